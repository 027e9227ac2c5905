"""Trains small models of SmolLM3 and Granite in float64: the cases smollm3, granite and granite_tied of tests/data/reference.

Usage:

    python3 make_families.py FOLDER

The forward pass is written out below and compared with the class of transformers, which computes in float32. Gradients are
PyTorch's, and so is AdamW. Made with torch 2.15.0 and transformers 5.24.0.

What differs from Llama:

    smollm3  the layers whose entry of no_rope_layers is 0 do not rotate queries and keys; by default every fourth
    granite  embeddings, scores, what a block adds to the stream, and logits are scaled: four numbers of config.json

A case is FOLDER/NAME, with the initial weights as transformers writes them, FOLDER/NAME.tokens.bin, one stream of tokens in the
format of llm.c, and FOLDER/NAME.h5: the settings as attributes, `logits` of the first two sequences, `loss`, `grad_norm` and
`lr` of each step, and the trained weights under final/.
"""

import math
import sys
from pathlib import Path

import h5py
import numpy
import torch
import transformers
from make_packed import norm, optimizer_of, rate, update
from torch.nn.functional import cross_entropy, linear, silu

COMMON = {
    "layers": 2, "heads": 4, "kv_heads": 2, "hidden": 48, "feed_forward": 88, "sequence": 24, "vocab": 131, "global_batch": 4,
    "steps": 8, "warmup": 2, "lr": 2e-3, "min_lr": 1e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "clip": 1.0,
    "norm_eps": 1e-6, "theta": 10000.0, "tied": False, "no_rope_every": 0, "attention_scale": 12**-0.5, "embedding_scale": 1.0,
    "residual_scale": 1.0, "logit_divisor": 1.0,
}  # fmt: skip
SCALES = {"attention_scale": 0.125, "embedding_scale": 6.0, "residual_scale": 0.22, "logit_divisor": 4.0}
CASES = {
    "smollm3": COMMON | {"family": "smollm3", "layers": 5, "theta": 2e6, "tied": True, "no_rope_every": 4, "seed": 91},
    "granite": COMMON | SCALES | {"family": "granite", "seed": 92},
    "granite_tied": COMMON | SCALES | {"family": "granite", "tied": True, "logit_divisor": 0.5, "norm_eps": 1e-5, "seed": 93},
}


def rotates(case, layer):
    return case["no_rope_every"] == 0 or (layer + 1) % case["no_rope_every"] != 0


def new_model(case):
    keys = {
        "hidden_size": case["hidden"], "intermediate_size": case["feed_forward"], "num_hidden_layers": case["layers"],
        "num_attention_heads": case["heads"], "num_key_value_heads": case["kv_heads"], "vocab_size": case["vocab"],
        "max_position_embeddings": case["sequence"], "rms_norm_eps": case["norm_eps"], "tie_word_embeddings": case["tied"],
        "rope_parameters": {"rope_type": "default", "rope_theta": case["theta"]}, "attn_implementation": "eager",
        "pad_token_id": None, "bos_token_id": None, "eos_token_id": None,
    }  # fmt: skip
    if case["family"] == "smollm3":
        config = transformers.SmolLM3Config(**keys)
        assert config.no_rope_layers == [int(rotates(case, layer)) for layer in range(case["layers"])]
        model = transformers.SmolLM3ForCausalLM(config)
    else:
        config = transformers.GraniteConfig(
            **keys, attention_multiplier=case["attention_scale"], embedding_multiplier=case["embedding_scale"],
            residual_multiplier=case["residual_scale"], logits_scaling=case["logit_divisor"],
        )  # fmt: skip
        model = transformers.GraniteForCausalLM(config)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            noise = 0.05 * torch.randn(weights.shape)
            weights.copy_(1 + noise if "norm" in name else noise)
    return model.eval()


def rotated(x, theta):
    """Rotates [sequences, heads, tokens, width]. Halves of a head form the pairs."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[2], dtype=x.dtype)[:, None] * theta ** (-torch.arange(half, dtype=x.dtype) / half)
    low, high = x[..., :half], x[..., half:]
    return torch.cat([low * angles.cos() - high * angles.sin(), high * angles.cos() + low * angles.sin()], -1)


def attention(case, w, layer, x):
    name = f"model.layers.{layer}.self_attn"

    def heads(projection, count):
        y = linear(x, w[f"{name}.{projection}.weight"])
        return y.view(*x.shape[:2], count, -1).transpose(1, 2)

    queries, keys, values = heads("q_proj", case["heads"]), heads("k_proj", case["kv_heads"]), heads("v_proj", case["kv_heads"])
    if rotates(case, layer):
        queries, keys = rotated(queries, case["theta"]), rotated(keys, case["theta"])
    keys, values = (y.repeat_interleave(case["heads"] // case["kv_heads"], 1) for y in (keys, values))
    future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    scores = (queries @ keys.transpose(2, 3) * case["attention_scale"]).masked_fill(future, -math.inf)
    mixed = (scores.softmax(-1) @ values).transpose(1, 2)
    return linear(mixed.reshape(*x.shape[:2], -1), w[f"{name}.o_proj.weight"])


def logits(case, w, tokens):
    x = w["model.embed_tokens.weight"][tokens] * case["embedding_scale"]
    for layer in range(case["layers"]):
        block = f"model.layers.{layer}"
        y = attention(case, w, layer, norm(x, w[f"{block}.input_layernorm.weight"], case["norm_eps"]))
        x = x + y * case["residual_scale"]
        y = norm(x, w[f"{block}.post_attention_layernorm.weight"], case["norm_eps"])
        gate, up = (linear(y, w[f"{block}.mlp.{part}_proj.weight"]) for part in ("gate", "up"))
        x = x + linear(silu(gate) * up, w[f"{block}.mlp.down_proj.weight"]) * case["residual_scale"]
    x = norm(x, w["model.norm.weight"], case["norm_eps"])
    return linear(x, w["model.embed_tokens.weight" if case["tied"] else "lm_head.weight"]) / case["logit_divisor"]


def token_stream(case):
    """Four of five tokens follow from the one before them."""
    rng = numpy.random.default_rng(case["seed"])
    count = case["steps"] * case["global_batch"] * case["sequence"] + 1
    tokens = rng.integers(0, case["vocab"], count)
    for at in numpy.flatnonzero(rng.random(count) < 0.8):
        if at > 0:
            tokens[at] = (3 * tokens[at - 1] + 7) % case["vocab"]
    return tokens


def write_tokens(path, tokens):
    header = numpy.zeros(256, "<i4")
    header[:3] = 20240520, 1, len(tokens)
    path.write_bytes(header.tobytes() + tokens.astype("<u2").tobytes())


def batches_of(case, stream):
    """(tokens, targets) of each step, each [global_batch, sequence]."""
    shape = (case["steps"], case["global_batch"], case["sequence"])
    return list(zip(torch.tensor(stream[:-1]).view(shape), torch.tensor(stream[1:]).view(shape), strict=True))


def distance(name, ours, theirs):
    """How far the logits of the forward pass here are from those of transformers, which has to be little."""
    worst = float((ours - theirs.detach().double()).abs().max() / theirs.detach().double().abs().max())
    assert worst < 1e-5, f"{name}: differs from transformers by {worst}"
    return worst


def write_case(path, case, records, w, **arrays):
    """NAME.h5: the case as attributes, other arrays, the records of the steps, and the trained parameters."""
    with h5py.File(path, "w") as file:
        file.attrs.update(case)
        for key, values in (arrays | records).items():
            file[key] = numpy.array(values)
        for key, value in w.items():
            file[f"final/{key}"] = value.detach().numpy().astype("f4")


def train(case, w, batches):
    optimizer = optimizer_of(case, w)
    records = {"loss": [], "grad_norm": [], "lr": []}
    for step, (tokens, targets) in enumerate(batches):
        loss = cross_entropy(logits(case, w, tokens).flatten(0, 1), targets.flatten())
        size = update(case, w, optimizer, step, loss)
        for name, value in (("loss", loss.item()), ("grad_norm", size), ("lr", rate(case, step))):
            records[name].append(value)
    return records


def make(name, case, folder):
    torch.manual_seed(case["seed"])
    model, stream = new_model(case), token_stream(case)
    model.save_pretrained(folder / name)
    (folder / name / "generation_config.json").unlink(missing_ok=True)
    write_tokens(folder / f"{name}.tokens.bin", stream)
    batches = batches_of(case, stream)
    w = {key: value.detach().double().requires_grad_() for key, value in model.named_parameters()}
    ours = logits(case, w, batches[0][0]).detach()
    worst = distance(name, ours, model(batches[0][0]).logits)
    records = train(case, w, batches)
    write_case(folder / f"{name}.h5", case, records, w, logits=ours[:2].numpy().astype("f4"))
    print(f"{name}: {worst:.1e} from transformers, loss", *(f"{loss:.6f}" for loss in records["loss"]))
    print(f"{name}: norm of the gradient", *(f"{size:.3f}" for size in records["grad_norm"]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    for name, case in CASES.items():
        make(name, case, Path(sys.argv[1]))
