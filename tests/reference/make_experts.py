"""Trains mixtures with a shared expert in float64: the cases qwen2_moe and glm4_moe of tests/data/reference.

Usage:

    python3 make_experts.py FOLDER

The forward pass is written out below and compared with the class of transformers, which computes in float32. Gradients are
PyTorch's, and so is AdamW. Made with torch 2.15.0 and transformers 5.24.0.

    qwen2_moe  scores are a softmax and gates are not normalized; a shared expert, times the sigmoid of a product; biases of q, k, v;
               the loss of the balance is a mean over the rows of a micro-batch of two sequences
    glm4_moe   scores are sigmoids, to which a bias is added for the choice alone; a shared expert; norms of q and k. After a step the
               bias of an expert that fewer tokens than the mean chose grows by router_bias_rate, and that of an expert that more
               tokens chose falls by it (Wang et al., arXiv 2408.15664)

A case is what make_families.py describes. NAME.h5 also has `counts` [steps, layers, experts]: how often a step's tokens chose each
expert. A float32 run has to choose the same experts, so the script stops if a choice was close.
"""

import math
import sys
from pathlib import Path

import torch
import transformers
from make_families import COMMON, batches_of, distance, rotated, token_stream, write_case, write_tokens
from make_packed import norm, optimizer_of, rate, update
from torch.nn.functional import cross_entropy, linear, silu

EXPERTS = COMMON | {"micro_batch": 2, "experts": 7, "top_k": 3, "expert_width": 36, "shared_width": 72, "aux": 0.0}
CASES = {
    "qwen2_moe": EXPERTS | {"family": "qwen2_moe", "shared_width": 44, "aux": 0.02, "seed": 128},
    "glm4_moe": EXPERTS | {"family": "glm4_moe", "router_bias_rate": 0.015625, "norm_eps": 1e-5, "seed": 206},
}
BIAS = "gate.e_score_correction_bias"
MARGIN = 3e-5  # between the last expert that is chosen and the next; sums in another order move scores by about 1e-6


def is_glm(case):
    return case["family"] == "glm4_moe"


def new_model(case):
    keys = {
        "hidden_size": case["hidden"], "moe_intermediate_size": case["expert_width"], "num_hidden_layers": case["layers"],
        "num_attention_heads": case["heads"], "num_key_value_heads": case["kv_heads"], "vocab_size": case["vocab"],
        "max_position_embeddings": case["sequence"], "rms_norm_eps": case["norm_eps"], "tie_word_embeddings": False,
        "rope_parameters": {"rope_type": "default", "rope_theta": case["theta"]},
        "num_experts_per_tok": case["top_k"], "attn_implementation": "eager",
        "pad_token_id": None, "bos_token_id": None, "eos_token_id": None,
    }  # fmt: skip
    if is_glm(case):
        keys["rope_parameters"]["partial_rotary_factor"] = 1.0
        config = transformers.Glm4MoeConfig(
            **keys, n_routed_experts=case["experts"], n_shared_experts=case["shared_width"] // case["expert_width"],
            first_k_dense_replace=0, num_mtp_layers=0, use_qk_norm=True, head_dim=case["hidden"] // case["heads"],
        )  # fmt: skip
        model = transformers.Glm4MoeForCausalLM(config)
    else:
        config = transformers.Qwen2MoeConfig(
            **keys,
            num_experts=case["experts"],
            shared_expert_intermediate_size=case["shared_width"],
            router_aux_loss_coef=case["aux"],
        )
        model = transformers.Qwen2MoeForCausalLM(config)
    with torch.no_grad():
        for name, weights in [*model.named_parameters(), *model.named_buffers()]:
            if "inv_freq" in name:
                continue
            noise = 0.05 * torch.randn(weights.shape)
            weights.copy_(1 + noise if "norm" in name else 6 * noise if name.endswith("gate.weight") else noise)
    return model.eval()


def on_disk(model):
    """Its weights by the names in files, where each expert has its own."""
    found = {}
    for name, value in model.state_dict().items():
        block = name.rpartition(".experts.")[0]
        if name.endswith("experts.gate_up_proj"):
            for expert, both in enumerate(value):
                for part, half in zip(("gate", "up"), both.chunk(2), strict=True):
                    found[f"{block}.experts.{expert}.{part}_proj.weight"] = half
        elif name.endswith("experts.down_proj"):
            found |= {f"{block}.experts.{expert}.down_proj.weight": one for expert, one in enumerate(value)}
        else:
            found[name] = value
    return {name: value.detach().clone() for name, value in found.items()}


def attention(case, w, name, x):
    def heads(part, count):
        bias = w.get(f"{name}.{part}_proj.bias")
        y = linear(x, w[f"{name}.{part}_proj.weight"], bias).view(*x.shape[:2], count, -1)
        scale = w.get(f"{name}.{part}_norm.weight")
        return (y if scale is None else norm(y, scale, case["norm_eps"])).transpose(1, 2)

    queries, keys, values = heads("q", case["heads"]), heads("k", case["kv_heads"]), heads("v", case["kv_heads"])
    queries, keys = rotated(queries, case["theta"]), rotated(keys, case["theta"])
    keys, values = (y.repeat_interleave(case["heads"] // case["kv_heads"], 1) for y in (keys, values))
    future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    scores = (queries @ keys.transpose(2, 3) / math.sqrt(queries.shape[-1])).masked_fill(future, -math.inf)
    mixed = (scores.softmax(-1) @ values).transpose(1, 2)
    return linear(mixed.reshape(*x.shape[:2], -1), w[f"{name}.o_proj.weight"])


def feed_forward(w, name, x):
    gate, up, down = (w[f"{name}.{part}_proj.weight"] for part in ("gate", "up", "down"))
    return linear(silu(linear(x, gate)) * linear(x, up), down)


def choices(scores, count):
    values, index = scores.topk(count + 1, dim=-1)
    margin = (values[:, -2] - values[:, -1]).min().item()
    if margin < MARGIN:
        sys.exit(f"the scores of two experts differ by {margin:.1e}: take another seed")
    return index[:, :-1]


def mixture(case, w, name, x):
    """Returns the result, the loss of the balance, and how often each expert was chosen."""
    rows, experts = x.reshape(-1, case["hidden"]), case["experts"]
    router = linear(rows, w[f"{name}.gate.weight"])
    scores = router.sigmoid() if is_glm(case) else router.softmax(-1)
    index = choices(scores + w[f"{name}.{BIAS}"] if is_glm(case) else scores, case["top_k"])
    gates = scores.gather(1, index)
    if is_glm(case):
        gates = gates / gates.sum(-1, keepdim=True)
        y = feed_forward(w, f"{name}.shared_experts", rows)
    else:
        y = linear(rows, w[f"{name}.shared_expert_gate.weight"]).sigmoid() * feed_forward(w, f"{name}.shared_expert", rows)
    for expert in range(experts):
        at, place = torch.where(index == expert)
        y = y.index_add(0, at, feed_forward(w, f"{name}.experts.{expert}", rows[at]) * gates[at, place, None])
    counts = torch.bincount(index.flatten(), minlength=experts)
    balance = experts * (counts.double() / counts.sum() * scores.mean(0)).sum()
    return y.view(x.shape), balance, counts


def logits(case, w, tokens):
    x, balance, counts = w["model.embed_tokens.weight"][tokens], 0, []
    for layer in range(case["layers"]):
        block = f"model.layers.{layer}"
        x = x + attention(case, w, f"{block}.self_attn", norm(x, w[f"{block}.input_layernorm.weight"], case["norm_eps"]))
        y = norm(x, w[f"{block}.post_attention_layernorm.weight"], case["norm_eps"])
        y, of_block, chosen = mixture(case, w, f"{block}.mlp", y)
        x, balance = x + y, balance + of_block
        counts.append(chosen)
    x = norm(x, w["model.norm.weight"], case["norm_eps"])
    return linear(x, w["lm_head.weight"]), balance, torch.stack(counts)


def move_biases(case, w, counts):
    for layer, of_layer in enumerate(counts.double()):
        w[f"model.layers.{layer}.mlp.{BIAS}"] += case["router_bias_rate"] * torch.sign(of_layer.mean() - of_layer)


def train(case, w, trained, batches):
    optimizer = optimizer_of(case, trained)
    records = {"loss": [], "grad_norm": [], "lr": [], "counts": []}
    for step, (tokens, targets) in enumerate(batches):
        loss, total, counts = 0.0, 0.0, 0
        parts = case["global_batch"] // case["micro_batch"]
        for own, wanted in zip(tokens.chunk(parts), targets.chunk(parts), strict=True):
            found, balance, chosen = logits(case, w, own)
            entropy = cross_entropy(found.flatten(0, 1), wanted.flatten())
            loss, total = loss + entropy.item() / parts, total + (entropy + case["aux"] * balance) / parts
            counts = counts + chosen
        size = update(case, trained, optimizer, step, total)
        if is_glm(case):
            move_biases(case, w, counts)
        for name, value in (("loss", loss), ("grad_norm", size), ("lr", rate(case, step)), ("counts", counts.numpy())):
            records[name].append(value)
    return records


def make(name, case, folder):
    torch.manual_seed(case["seed"])
    model, stream = new_model(case), token_stream(case)
    model.save_pretrained(folder / name)
    (folder / name / "generation_config.json").unlink(missing_ok=True)
    write_tokens(folder / f"{name}.tokens.bin", stream)
    batches = batches_of(case, stream)
    w = {key: value.double() for key, value in on_disk(model).items()}
    trained = {key: value.requires_grad_() for key, value in w.items() if not key.endswith(BIAS)}
    ours = logits(case, w, batches[0][0])[0].detach()
    worst = distance(name, ours, model(batches[0][0]).logits)
    records = train(case, w, trained, batches)
    write_case(folder / f"{name}.h5", case, records, w, logits=ours[:2].numpy().astype("f4"))
    print(f"{name}: {worst:.1e} from transformers, loss", *(f"{loss:.6f}" for loss in records["loss"]))
    print(f"{name}: choices of the first block", *(counts[0].tolist() for counts in records["counts"]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    for name, case in CASES.items():
        make(name, case, Path(sys.argv[1]))
