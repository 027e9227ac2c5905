#!/usr/bin/env python3
"""Measures training steps in PyTorch: torch.compile, bf16 autocast, fused AdamW, gradients clipped to a norm of 1.

    python3 pytorch_steps.py MODEL SEQUENCES TOKENS [--eager]

MODEL: a key of MODELS. The last line of the output is JSON. Runs on a GPU if there is one; on a CPU, without torch.compile.
"""

import argparse
import json
import statistics
import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

STEPS, WARM_UP = 20, 8


@dataclass
class Shape:
    layers: int
    hidden: int
    heads: int
    vocab: int
    kv_heads: int = 0  # 0: a GPT-2; else a Llama
    feed_forward: int = 0


MODELS = {
    "gpt2-124m": Shape(12, 768, 12, 50257),
    "gpt2-124m-50304": Shape(12, 768, 12, 50304),  # a vocabulary that 64 divides
    "gpt2-1.5b": Shape(48, 1600, 25, 50257),
    "llama-1b": Shape(16, 2048, 32, 128256, 8, 8192),
    "tiny-gpt2": Shape(2, 64, 4, 256),
    "tiny-llama": Shape(2, 64, 4, 256, 2, 128),
}


def rotated(x, angles):
    """Rotary positions of [B,H,T,d], with the halves of a head as pairs."""
    first, second = x.float().chunk(2, -1)
    sine, cosine = angles.sin(), angles.cos()
    return torch.cat((first * cosine - second * sine, first * sine + second * cosine), -1).to(x.dtype)


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape, width = shape, shape.hidden
        head = width // shape.heads
        is_llama = shape.kv_heads > 0
        self.widths = [width, *(2 * [head * (shape.kv_heads or shape.heads)])]
        norm = nn.RMSNorm if is_llama else nn.LayerNorm
        self.norms = nn.ModuleList([norm(width), norm(width)])
        self.qkv = nn.Linear(width, sum(self.widths), bias=not is_llama)
        self.out = nn.Linear(width, width, bias=not is_llama)
        wide = shape.feed_forward or 4 * width
        self.up = nn.Linear(width, 2 * wide if is_llama else wide, bias=not is_llama)
        self.down = nn.Linear(wide, width, bias=not is_llama)

    def attention(self, x, angles):
        batch, tokens, width = x.shape
        head = width // self.shape.heads
        q, k, v = (part.view(batch, tokens, -1, head).transpose(1, 2) for part in self.qkv(x).split(self.widths, -1))
        if angles is not None:
            q, k = rotated(q, angles), rotated(k, angles)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=k.shape[1] != q.shape[1])
        return self.out(y.transpose(1, 2).reshape(batch, tokens, width))

    def feed_forward(self, x):
        if self.shape.kv_heads == 0:
            return self.down(functional.gelu(self.up(x), approximate="tanh"))
        gate, up = self.up(x).chunk(2, -1)
        return self.down(functional.silu(gate) * up)

    def forward(self, x, angles):
        x = x + self.attention(self.norms[0](x), angles)
        return x + self.feed_forward(self.norms[1](x))


class Transformer(nn.Module):
    def __init__(self, shape, tokens):
        super().__init__()
        is_llama = shape.kv_heads > 0
        self.tokens = nn.Embedding(shape.vocab, shape.hidden)
        self.positions = None if is_llama else nn.Embedding(tokens, shape.hidden)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = (nn.RMSNorm if is_llama else nn.LayerNorm)(shape.hidden)
        self.head = nn.Linear(shape.hidden, shape.vocab, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.02)
        pairs = shape.hidden // shape.heads // 2
        rates = 500000.0 ** (-torch.arange(pairs) / pairs)
        self.register_buffer("angles", torch.outer(torch.arange(tokens), rates) if is_llama else None)

    def forward(self, inputs, targets):
        x = self.tokens(inputs)
        if self.positions is not None:
            x = x + self.positions.weight
        for block in self.blocks:
            x = block(x, self.angles)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def measure(model, batch, device, learning_rate=3e-4):
    """Seconds and losses of the steps."""
    inputs, targets = batch
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate, betas=(0.9, 0.95), fused=True)
    seconds, losses = [], []
    for _ in range(STEPS):
        begin = time.perf_counter()
        with torch.autocast(device, torch.bfloat16):
            loss = model(inputs, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())  # waits for the device
        seconds.append(time.perf_counter() - begin)
    return seconds, losses


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("sequences", type=int)
    parser.add_argument("tokens", type=int)
    parser.add_argument("--eager", action="store_true")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    shape = MODELS[arguments.model]
    model = Transformer(shape, arguments.tokens).to(device)
    text = torch.randint(shape.vocab, (arguments.sequences, arguments.tokens + 1), device=device)
    step = model if arguments.eager or device == "cpu" else torch.compile(model)
    seconds, losses = measure(step, (text[:, :-1].contiguous(), text[:, 1:].contiguous()), device)
    median = statistics.median(seconds[WARM_UP:])
    measured = {
        "model": arguments.model,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "seconds": median,
        "all_seconds": seconds,
        "tokens_per_second": arguments.sequences * arguments.tokens / median,
        "peak_mib": torch.cuda.max_memory_reserved() / 2**20 if device == "cuda" else None,
        "losses": losses,
    }
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
