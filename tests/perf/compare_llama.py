#!/usr/bin/env python3
"""kzero's training speed on a Llama or Qwen3-MoE compared with transformers' own class, in one sitting on one machine.

    VENV/bin/python compare_llama.py --kzero build/release/kzero [--deck input/llama/30m.toml] [--precisions fp32 bf16]
               [--rounds 2] [--steps 8]

VENV has torch and transformers. The rival is LlamaForCausalLM with scaled dot-product attention under torch.compile and
without, one process with all cores, fused AdamW, its allocator kept from giving memory back; in bf16 under autocast.
A deck with experts, such as input/llama/experts.toml, has Qwen3MoeForCausalLM as its rival, with experts one by one ("eager")
and by grouped products; kzero then also trains the dense model whose products have as many operations for a token.
kzero runs two ranks of one thread and one rank of all. Sides take turns; each figure is the best median of its rounds.
On a processor that is not Intel's, torch's MKL computes in AVX2 unless a library is preloaded whose mkl_serv_intel_cpu_true()
returns 1, which doubles the rival's fp32.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import tomllib

sys.path.append(os.path.dirname(__file__))  # at the end, because -P keeps profile.py from hiding Python's own
from compare import ROOT, WARM_UP, read_metrics

CORES = os.cpu_count()
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "8589934592", "MALLOC_TOP_PAD_": "67108864"}


def has_experts(deck):
    return deck["model"].get("experts", 0) > 0


def rival(deck, precision, compiled, steps, experts):
    """Trains in this process; prints the median tokens/s."""
    import torch
    import transformers as hf

    m, batch = deck["model"], deck["train"]["micro_batch"]
    shape = dict(
        vocab_size=m["vocab"],
        hidden_size=m["hidden"],
        intermediate_size=m["feed_forward"],
        num_hidden_layers=m["layers"],
        num_attention_heads=m["heads"],
        num_key_value_heads=m["kv_heads"],
        max_position_embeddings=m["sequence"],
        tie_word_embeddings=True,
        use_cache=False,
    )
    if has_experts(deck):
        config = hf.Qwen3MoeConfig(
            **shape,
            head_dim=m["hidden"] // m["heads"],
            num_experts=m["experts"],
            num_experts_per_tok=m["experts_per_token"],
            moe_intermediate_size=m["feed_forward"],
            norm_topk_prob=True,
            output_router_logits=True,
            router_aux_loss_coef=m["router_aux_loss"],
        )
        config._experts_implementation = experts
    else:
        config = hf.LlamaConfig(**shape)
    torch.manual_seed(1)
    torch.set_num_threads(CORES)
    model = hf.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    run = torch.compile(model) if compiled else model
    tokens = torch.randint(0, m["vocab"], (batch, m["sequence"] + 1))
    taken = []
    for _ in range(steps):
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            out = run(input_ids=tokens[:, :-1])
            loss = torch.nn.functional.cross_entropy(out.logits.flatten(0, 1), tokens[:, 1:].flatten())
            if has_experts(deck):
                loss = loss + m["router_aux_loss"] * balance(out.router_logits, m["experts"], m["experts_per_token"])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        taken.append(time.perf_counter() - begin)
    print(json.dumps(batch * m["sequence"] / statistics.median(taken[WARM_UP:])))


def balance(router_logits, experts, per_token):
    from transformers.models.qwen3_moe.modeling_qwen3_moe import load_balancing_loss_func

    return load_balancing_loss_func(router_logits, experts, per_token)


def rival_tokens_per_s(arguments, precision, compiled, experts):
    # -P: this folder's profile.py is not Python's.
    command = [
        sys.executable,
        "-P",
        __file__,
        "--kzero",
        arguments.kzero,
        "--deck",
        arguments.deck,
        "--steps",
        str(arguments.steps),
        "--rival",
        precision,
        "compiled" if compiled else "eager",
        experts,
    ]
    environment = dict(os.environ, OMP_NUM_THREADS=str(CORES), **KEEP_MEMORY)
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def kzero_tokens_per_s(arguments, deck, precision, ranks, tokens, folder, *changes):
    metrics = folder / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    batch = deck["train"]["micro_batch"]
    command = [
        "mpiexec",
        "-n",
        str(ranks),
        arguments.kzero,
        "train",
        arguments.deck,
        f"train.precision={precision}",
        f"data.files={tokens}",
        "data.format=llmc",
        f"train.global_batch={batch * ranks}",
        f"train.steps={arguments.steps}",
        "optimizer.warmup=0",
        f"run.metrics={metrics}",
        *changes,
    ]
    subprocess.run(command, env=dict(os.environ, OMP_NUM_THREADS=str(CORES // ranks)), check=True, stdout=subprocess.DEVNULL)
    return statistics.median(step["tokens_per_second"] for step in read_metrics(metrics)[1][WARM_UP:])


def compare(arguments, deck, precision, folder):
    tokens = folder / "tokens.bin"
    draw, count = random.Random(1), 1 << 18
    tokens.write_bytes(
        struct.pack("<256i", 20240520, 1, count, *[0] * 253)
        + struct.pack(f"<{count}H", *(draw.randrange(deck["model"]["vocab"]) for _ in range(count)))
    )
    sides = {
        f"kzero {ranks} x {CORES // ranks}": lambda r=ranks: kzero_tokens_per_s(arguments, deck, precision, r, tokens, folder)
        for ranks in {1, CORES}
    }
    if has_experts(deck):
        width = deck["model"]["experts_per_token"] * deck["model"]["feed_forward"]
        dense = ["experts=0", "experts_per_token=0", "router_aux_loss=0", f"feed_forward={width}"]
        sides[f"kzero, dense, {CORES} x 1"] = lambda: kzero_tokens_per_s(
            arguments, deck, precision, CORES, tokens, folder, *(f"model.{key}" for key in dense)
        )
    for experts in ("eager", "grouped_mm") if has_experts(deck) else ("",):
        for compiled in (False, True):
            name = "transformers" + (f", {experts}" if experts else "") + (", compiled" if compiled else "")
            sides[name] = lambda c=compiled, e=experts: rival_tokens_per_s(arguments, precision, c, e)
    best = dict.fromkeys(sides, 0.0)
    for _ in range(arguments.rounds):
        for name, side in sides.items():
            best[name] = max(best[name], side())
    fastest = max(speed for name, speed in best.items() if name.startswith("transformers"))
    for name, speed in sorted(best.items(), key=lambda pair: -pair[1]):
        print(f"{precision}  {name:36}{speed:10.0f} tokens/s  {speed / fastest:5.2f} of the faster rival", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kzero", required=True)
    parser.add_argument("--deck", default=str(ROOT / "input/llama/30m.toml"))
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"], choices=["fp32", "bf16"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rival", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    deck = tomllib.loads(pathlib.Path(arguments.deck).read_text())
    if arguments.rival:
        precision, way, experts = arguments.rival
        rival(deck, precision, way == "compiled", arguments.steps, experts)
        return
    arguments.kzero, arguments.deck = (str(pathlib.Path(p).resolve()) for p in (arguments.kzero, arguments.deck))
    with tempfile.TemporaryDirectory() as folder:
        for precision in arguments.precisions:
            compare(arguments, deck, precision, pathlib.Path(folder))


if __name__ == "__main__":
    main()
