"""Trains small models on packed documents in float64: packed_llama, packed_qwen2 and weighted_llama of tests/data/reference.

Usage:

    python3 make_packed.py FOLDER [NAME]...

Every document is computed alone, so no row and no mask can be wrong. The forward pass is written out below and compared with
the class of transformers, which computes parts of it in float32. Gradients are PyTorch's, and so is AdamW. The loss of a step
is the sum over its targets, each times the weight of its document, divided by their number. Made with torch 2.15.0 and
transformers 5.24.0.

A case is FOLDER/NAME, with the initial weights as transformers writes them, FOLDER/NAME.docs, the documents as docs/data.md
describes them, and FOLDER/NAME.h5: the settings as attributes, `loss`, `grad_norm`, `lr` and `targets` of each step, `row` and
`offset` of each document, and the trained weights under final/. A case with weights also has FOLDER/NAME.other.docs: the documents
of each step in another order, which packs them into other rows. Its numbers are the same.
"""

import math
import struct
import sys
from pathlib import Path

import h5py
import numpy
import torch
import transformers
from torch.nn.functional import cross_entropy, linear, silu

COMMON = {
    "layers": 2, "heads": 4, "kv_heads": 2, "hidden": 32, "feed_forward": 56, "sequence": 32, "global_batch": 4, "steps": 6, "warmup": 2,
    "lr": 2e-3, "min_lr": 2e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "clip": 1.0,
}  # fmt: skip
CASES = {
    "packed_llama": COMMON | {"family": "llama", "vocab": 97, "theta": 500000.0, "norm_eps": 1e-5, "tied": False, "seed": 71},
    "packed_qwen2": COMMON | {"family": "qwen2", "vocab": 89, "theta": 100.0, "norm_eps": 1e-6, "tied": True, "seed": 72},
    "weighted_llama": COMMON
    | {
        "family": "llama", "vocab": 97, "theta": 500000.0, "norm_eps": 1e-5, "tied": False, "seed": 73,
        "weights": [1.0, 0.25, -0.5, 2.0, 0.0, 1.3, 0.7, 1.0, 3.5],
    },
}  # fmt: skip


def new_model(case):
    names = {"llama": ("LlamaConfig", "LlamaForCausalLM"), "qwen2": ("Qwen2Config", "Qwen2ForCausalLM")}[case["family"]]
    config = getattr(transformers, names[0])(
        hidden_size=case["hidden"], intermediate_size=case["feed_forward"], num_hidden_layers=case["layers"],
        num_attention_heads=case["heads"], num_key_value_heads=case["kv_heads"], vocab_size=case["vocab"],
        max_position_embeddings=case["sequence"], rms_norm_eps=case["norm_eps"], rope_theta=case["theta"],
        tie_word_embeddings=case["tied"], attention_dropout=0.0, use_cache=False,
    )  # fmt: skip
    model = getattr(transformers, names[1])(config).eval()
    with torch.no_grad():
        for name, weights in model.named_parameters():
            noise = torch.randn(weights.shape)
            # Key biases have a gradient only because of the rotation. A low theta, and large biases, keep rounding errors of
            # the gradient, which Adam magnifies, small relative to the biases.
            weights.copy_(0.3 * noise if name.endswith("bias") else 1 + 0.1 * noise if "norm" in name else 0.06 * noise)
    return model


def norm(x, scale, eps):
    return scale * x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)


def rotated(x, theta):
    """Rotates [heads, tokens, width] by the positions 0, 1, ... of the tokens. Halves of a head form the pairs."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * theta ** (-torch.arange(half, dtype=x.dtype) / half)
    low, high = x[..., :half], x[..., half:]
    return torch.cat([low * angles.cos() - high * angles.sin(), high * angles.cos() + low * angles.sin()], -1)


def attention(case, w, name, x):
    def heads(projection, count):
        y = linear(x, w[f"{name}.{projection}.weight"], w.get(f"{name}.{projection}.bias"))
        return y.view(len(x), count, -1).transpose(0, 1)

    group = case["heads"] // case["kv_heads"]
    queries = rotated(heads("q_proj", case["heads"]), case["theta"])
    keys = rotated(heads("k_proj", case["kv_heads"]), case["theta"]).repeat_interleave(group, 0)
    values = heads("v_proj", case["kv_heads"]).repeat_interleave(group, 0)
    scores = queries @ keys.transpose(1, 2) / math.sqrt(queries.shape[-1])
    future = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    mixed = scores.masked_fill(future, -math.inf).softmax(-1) @ values
    return linear(mixed.transpose(0, 1).reshape(len(x), -1), w[f"{name}.o_proj.weight"])


def logits(case, w, tokens):
    x = w["model.embed_tokens.weight"][tokens]
    for layer in range(case["layers"]):
        block = f"model.layers.{layer}"
        x = x + attention(case, w, f"{block}.self_attn", norm(x, w[f"{block}.input_layernorm.weight"], case["norm_eps"]))
        y = norm(x, w[f"{block}.post_attention_layernorm.weight"], case["norm_eps"])
        gate, up = (linear(y, w[f"{block}.mlp.{part}_proj.weight"]) for part in ("gate", "up"))
        x = x + linear(silu(gate) * up, w[f"{block}.mlp.down_proj.weight"])
    x = norm(x, w["model.norm.weight"], case["norm_eps"])
    return linear(x, w["model.embed_tokens.weight" if case["tied"] else "lm_head.weight"])


def documents(case):
    """Fills all rows of the run, in order. Every eighth document has no target; every sixth fills a row."""
    rng = numpy.random.default_rng(case["seed"])
    found, row, offset = [], 0, 0
    while True:
        number = len(found)
        size = case["sequence"] if number % 6 == 5 else int(rng.integers(2, 22))
        if offset + size > case["sequence"]:
            row, offset = row + 1, 0
        if row == case["steps"] * case["global_batch"]:
            return found
        tokens = (
            rng.integers(case["vocab"]) + 5 * numpy.arange(size) + (rng.random(size) < 0.2) * rng.integers(0, 40, size)
        ) % case["vocab"]
        targets = (rng.random(size) < 0.6) & (number % 8 != 7)
        targets[0] = False  # has no token before it
        # Rounded as the file stores it.
        weight = float(numpy.float32(case["weights"][number % len(case["weights"])])) if "weights" in case else None
        found.append({"tokens": tokens, "targets": targets, "row": row, "offset": offset, "weight": weight})
        offset += size


def rows_of(case, docs):
    """The number of rows that documents fill in order."""
    rows, offset = 1, 0
    for doc in docs:
        if offset + len(doc["tokens"]) > case["sequence"]:
            rows, offset = rows + 1, 0
        offset += len(doc["tokens"])
    return rows


def in_another_order(case, docs):
    """The documents of each step in an order that fills as many rows, and does not reach into the next step's."""
    rng, found = numpy.random.default_rng(case["seed"] + 1), []
    for step in range(case["steps"]):
        mine = [d for d in docs if d["row"] // case["global_batch"] == step]
        before = len(found)
        while True:
            order = rng.permutation(len(mine))
            tried = found[:before] + [mine[i] for i in order]
            if list(order) != sorted(order) and rows_of(case, tried) == (step + 1) * case["global_batch"]:
                if not before or rows_of(case, tried[: before + 1]) == step * case["global_batch"] + 1:
                    break
        found = tried
    return found


def write_documents(path, docs):
    words = numpy.concatenate([d["tokens"].astype("u4") | d["targets"].astype("u4") << 31 for d in docs])
    starts = numpy.cumsum([0] + [len(d["tokens"]) for d in docs])
    has_weights = docs[0]["weight"] is not None
    weights = numpy.array([d["weight"] for d in docs], "<f4").tobytes() if has_weights else b""
    head = struct.pack("<8s2I2Q", b"KZERODOC", 1, 2 if has_weights else 0, len(words), len(docs))
    path.write_bytes(head.ljust(256, b"\0") + starts.astype("<u8").tobytes() + weights + words.astype("<u4").tobytes())


def rate(case, step):
    if step < case["warmup"]:
        return case["lr"] * (step + 1) / case["warmup"]
    done = (step - case["warmup"]) / (case["steps"] - case["warmup"])
    return case["min_lr"] + (case["lr"] - case["min_lr"]) * (1 + math.cos(math.pi * done)) / 2


def loss_of(case, w, docs):
    total = 0.0
    for doc in docs:
        tokens, targets = torch.tensor(doc["tokens"]), torch.tensor(doc["targets"])[1:]
        if targets.any():
            loss = cross_entropy(logits(case, w, tokens[:-1])[targets], tokens[1:][targets], reduction="sum")
            total = total + (loss if doc["weight"] is None else doc["weight"] * loss)
    return total / sum(int(doc["targets"].sum()) for doc in docs)


def optimizer_of(case, w):
    groups = [
        {"params": [p for p in w.values() if (p.ndim > 1) == decays], "weight_decay": case["weight_decay"] if decays else 0.0}
        for decays in (True, False)
    ]
    return torch.optim.AdamW(groups, betas=(case["beta1"], case["beta2"]), eps=case["eps"])


def update(case, w, optimizer, step, loss):
    """Takes a step along the gradient of the loss. Returns the gradient's norm before it is clipped."""
    for group in optimizer.param_groups:
        group["lr"] = rate(case, step)
    optimizer.zero_grad()
    loss.backward()
    size = torch.nn.utils.clip_grad_norm_(w.values(), math.inf)
    if size > case["clip"]:
        for p in w.values():
            p.grad *= case["clip"] / size
    optimizer.step()
    return size.item()


def train(case, w, docs):
    optimizer = optimizer_of(case, w)
    records = {"loss": [], "grad_norm": [], "lr": [], "targets": []}
    for step in range(case["steps"]):
        mine = [d for d in docs if d["row"] // case["global_batch"] == step]
        loss = loss_of(case, w, mine)
        size = update(case, w, optimizer, step, loss)
        for name, value in (
            ("loss", loss.item()), ("grad_norm", size), ("lr", rate(case, step)),
            ("targets", sum(int(d["targets"].sum()) for d in mine)),
        ):  # fmt: skip
            records[name].append(value)
    return records


def make(name, case, folder):
    torch.manual_seed(case["seed"])
    model, docs = new_model(case), documents(case)
    model.save_pretrained(folder / name)
    (folder / name / "generation_config.json").unlink(missing_ok=True)
    write_documents(folder / f"{name}.docs", docs)
    if "weights" in case:
        write_documents(folder / f"{name}.other.docs", in_another_order(case, docs))
    w = {key: value.detach().double().requires_grad_() for key, value in model.named_parameters()}
    tokens = torch.tensor(docs[5]["tokens"])
    theirs = model(tokens[None]).logits[0].detach().double()
    assert (logits(case, w, tokens) - theirs).abs().max() < 1e-5 * theirs.abs().max(), "unlike transformers"
    records = train(case, w, docs)
    with h5py.File(folder / f"{name}.h5", "w") as file:
        file.attrs.update({key: value for key, value in case.items()})
        for key, values in records.items():
            file[key] = values
        for key in ("row", "offset"):
            file[key] = [d[key] for d in docs]
        for key, value in w.items():
            file[f"final/{key}"] = value.detach().numpy().astype("f4")
    print(
        name, len(docs), "documents", *(f"{loss:.6f}" for loss in records["loss"]), *(f"{n:.3f}" for n in records["grad_norm"])
    )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    for name in sys.argv[2:] or CASES:
        make(name, CASES[name], Path(sys.argv[1]))
