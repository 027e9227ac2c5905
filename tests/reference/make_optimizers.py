"""Trains small models in float64 by optimizers that PyTorch lacks: the cases opt_ademamix, opt_cautious, opt_normuon, llama_polar
and llama_normuon of tests/data/reference.

Usage:

    python3 make_optimizers.py FOLDER

GPT-2 is the class of transformers in float64. Llama's forward pass is that of make_families.py. Gradients are PyTorch's. Made with
torch 2.15.0 and transformers 5.24.0.

With w the weight, g the gradient after clipping, and decay of tensors of two or more dimensions alone:

    ademamix  m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; s = b3(t) s + (1-b3(t)) g, u = (m/(1-b1^t) + a(t) s) /
              (sqrt(v/(1-b2^t)) + eps); the schedules b3 and a are those of arXiv 2409.03137, section 3.1
    muon      of a hidden matrix B = mu B + (1-mu) g; X = five polynomials of (1-mu) g + mu B; u = 0.2 sqrt(max(rows, columns)) X
    normuon   v = b2 v + (1-b2) mean of X^2 over the inputs of each output; O = X / (sqrt(v) + eps);
              u = 0.2 sqrt(rows columns) O / |O| (arXiv 2510.05491, algorithm 1)
    w = w (1 - lr decay) - lr u; with cautious_decay, only where u w >= 0 (arXiv 2510.12402)

Everything else is updated by AdamW. A case is as in make_families.py; weights of GPT-2 are in FOLDER/NAME.safetensors.
"""

import math
import sys
from pathlib import Path

import make_families
import torch
import transformers
from make_packed import rate
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy

ADAM = {"beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "clip": 0.75, "cautious_decay": 0}
GPT2 = {
    "family": "gpt2", "layers": 2, "hidden": 24, "heads": 3, "sequence": 20, "vocab": 101, "global_batch": 6, "steps": 8,
    "warmup": 2, "min_lr": 1e-4,
}  # fmt: skip
LLAMA = make_families.COMMON | {"family": "llama", "min_lr": 1e-4}
MATRICES = {"momentum": 0.95, "polynomials": "jordan"}
CASES = {
    "opt_ademamix": GPT2 | ADAM
    | {"kind": "ademamix", "beta2": 0.999, "beta3": 0.9999, "alpha": 8.0, "slow_warmup": 6, "lr": 1e-3, "seed": 101},
    "opt_cautious": GPT2 | ADAM | {"kind": "adamw", "weight_decay": 4.0, "cautious_decay": 1, "lr": 1e-3, "seed": 102},
    "opt_normuon": GPT2 | ADAM | MATRICES | {"kind": "normuon", "lr": 2e-3, "seed": 103},
    "llama_polar": LLAMA | ADAM | MATRICES
    | {"kind": "muon", "polynomials": "polar_express", "lr": 2e-3, "seed": 104},
    "llama_normuon": LLAMA | ADAM | MATRICES
    | {"kind": "normuon", "polynomials": "polar_express", "cautious_decay": 1, "weight_decay": 2.0, "lr": 2e-3, "seed": 105},
}  # fmt: skip
POLAR_EXPRESS = (  # arXiv 2505.16932, algorithm 1, before the division by 1.01
    (8.28721201814563, -23.595886519098837, 17.300387312530933),
    (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
    (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
    (3.3184196573706015, -2.488488024314874, 0.51004894012372),
    (2.300652019954817, -1.6689039845747493, 0.4188073119525673),
)


def orthogonal(u, polynomials):
    x = u.T if u.shape[0] > u.shape[1] else u
    if polynomials == "jordan":
        x, steps = x / (x.norm() + 1e-7), [(3.4445, -4.7750, 2.0315)] * 5
    else:
        x, steps = x / (1.01 * x.norm() + 1e-7), [(a / 1.01, b / 1.01**3, c / 1.01**5) for a, b, c in POLAR_EXPRESS]
    for a, b, c in steps:
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if u.shape[0] > u.shape[1] else x


class Optimizer:
    def __init__(self, case, w):
        self.case, self.w, self.t = case, w, 0
        self.first, self.second, self.slow = ({key: torch.zeros_like(p) for key, p in w.items()} for _ in range(3))
        self.outputs = {}

    def is_hidden(self, key):
        return self.case["kind"] in ("muon", "normuon") and self.w[key].ndim == 2 and ("h." in key or "layers." in key)

    def slow_settings(self):
        c = self.case
        share = min(1.0, self.t / c["slow_warmup"])
        first, last = math.log(c["beta1"]), math.log(c["beta3"])
        beta = math.exp(first * last / ((1 - share) * last + share * first))
        return min(beta, c["beta3"]), share * c["alpha"]

    def of_adam(self, key, g):
        c = self.case
        self.first[key] = c["beta1"] * self.first[key] + (1 - c["beta1"]) * g
        self.second[key] = c["beta2"] * self.second[key] + (1 - c["beta2"]) * g * g
        mean = self.first[key] / (1 - c["beta1"] ** self.t)
        if c["kind"] == "ademamix":
            beta, alpha = self.slow_settings()
            self.slow[key] = beta * self.slow[key] + (1 - beta) * g
            mean = mean + alpha * self.slow[key]
        return mean / ((self.second[key] / (1 - c["beta2"] ** self.t)).sqrt() + c["eps"])

    def of_matrix(self, key, number, u):
        """GPT-2 stores [inputs, outputs], Llama [outputs, inputs]."""
        c = self.case
        x = orthogonal(u, c["polynomials"])
        if c["kind"] == "muon":
            return 0.2 * math.sqrt(max(x.shape)) * x
        inputs = 0 if c["family"] == "gpt2" else 1
        mean = (x * x).mean(inputs, keepdim=True)
        v = c["beta2"] * self.outputs.get((key, number), torch.zeros_like(mean)) + (1 - c["beta2"]) * mean
        self.outputs[key, number] = v
        normed = x / (v.sqrt() + c["eps"])
        return 0.2 * math.sqrt(x.numel()) * normed / normed.norm()

    def of_parameter(self, key, g):
        if not self.is_hidden(key):
            return self.of_adam(key, g)
        mu = self.case["momentum"]
        self.first[key] = mu * self.first[key] + (1 - mu) * g
        u = (1 - mu) * g + mu * self.first[key]
        parts = u.chunk(3, 1) if key.endswith("c_attn.weight") else [u]
        return torch.cat([self.of_matrix(key, i, part) for i, part in enumerate(parts)], 1)

    @torch.no_grad()
    def step(self, lr):
        self.t += 1
        for key, p in self.w.items():
            u = self.of_parameter(key, p.grad)
            decay = torch.full_like(p, self.case["weight_decay"] if p.ndim > 1 else 0.0)
            if self.case["cautious_decay"]:
                decay[u * p < 0] = 0
            p.sub_(lr * (u + decay * p))


def new_gpt2(case, folder, name):
    """Returns the forward pass and its weights."""
    config = transformers.GPT2Config(
        vocab_size=case["vocab"], n_positions=case["sequence"], n_embd=case["hidden"], n_layer=case["layers"],
        n_head=case["heads"], resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager",
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config).double().eval()
    w = {key.removeprefix("transformer."): p for key, p in model.named_parameters()}
    with torch.no_grad():
        for key, p in w.items():
            noise = 0.05 * torch.randn(p.shape)
            p.copy_(1 + noise if "ln_" in key and key.endswith("weight") else noise)
    save_file({key: p.detach().float().contiguous() for key, p in w.items()}, folder / f"{name}.safetensors", {"format": "pt"})
    return lambda tokens: model(tokens).logits, w


def new_llama(case, folder, name):
    config = transformers.LlamaConfig(
        hidden_size=case["hidden"], intermediate_size=case["feed_forward"], num_hidden_layers=case["layers"],
        num_attention_heads=case["heads"], num_key_value_heads=case["kv_heads"], vocab_size=case["vocab"],
        max_position_embeddings=case["sequence"], rms_norm_eps=case["norm_eps"], tie_word_embeddings=case["tied"],
        rope_parameters={"rope_type": "default", "rope_theta": case["theta"]}, attn_implementation="eager",
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            noise = 0.05 * torch.randn(p.shape)
            p.copy_(1 + noise if "norm" in key else noise)
    model.save_pretrained(folder / name)
    (folder / name / "generation_config.json").unlink(missing_ok=True)
    w = {key: p.detach().double().requires_grad_() for key, p in model.named_parameters()}
    tokens = torch.arange(2 * case["sequence"]).view(2, -1) % case["vocab"]
    make_families.distance(name, make_families.logits(case, w, tokens).detach(), model(tokens).logits)
    return lambda tokens: make_families.logits(case, w, tokens), w


def train(case, forward, w, stream):
    """Each step's loss, norm of the gradient before clipping, and rate."""
    optimizer, records = Optimizer(case, w), {"loss": [], "grad_norm": [], "lr": []}
    for step, (tokens, targets) in enumerate(make_families.batches_of(case, stream)):
        loss = cross_entropy(forward(tokens).flatten(0, 1), targets.flatten())
        for p in w.values():
            p.grad = None
        loss.backward()
        for key, p in w.items():  # softmax ignores a bias of keys: rounding must not become a step
            if key.endswith("c_attn.bias"):
                p.grad[case["hidden"] : 2 * case["hidden"]] = 0
        size = torch.nn.utils.clip_grad_norm_(w.values(), math.inf)
        if size > case["clip"]:
            for p in w.values():
                p.grad *= case["clip"] / size
        optimizer.step(rate(case, step))
        for key, value in (("loss", loss.item()), ("grad_norm", size.item()), ("lr", rate(case, step))):
            records[key].append(value)
    return records


def make(name, case, folder):
    torch.manual_seed(case["seed"])
    new_model = new_gpt2 if case["family"] == "gpt2" else new_llama
    forward, w = new_model(case, folder, name)
    for p in w.values():
        p.data = p.data.float().double()
    stream = make_families.token_stream(case)
    make_families.write_tokens(folder / f"{name}.tokens.bin", stream)
    records = train(case, forward, w, stream)
    make_families.write_case(folder / f"{name}.h5", case, records, w)
    print(f"{name}: loss", *(f"{loss:.6f}" for loss in records["loss"]))
    print(f"{name}: norm of the gradient", *(f"{size:.3f}" for size in records["grad_norm"]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    for name, case in CASES.items():
        make(name, case, Path(sys.argv[1]))
