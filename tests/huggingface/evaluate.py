#!/usr/bin/env python3
"""kzero evaluate compared with transformers: the same perplexity, and every choice the same.

    VENV/bin/python evaluate.py --kzero build/release/kzero [--families gpt2 llama] [--ranks 2]

VENV has torch and transformers, which no other test needs: it is run by hand, after a change of src/infer, src/convert or
src/model. For each family kzero trains a small model on made tokens, exports it and scores a text, whose last window is
shorter, and choices: from the checkpoint and from the exported folder. Compared with transformers' model of that folder: the
perplexity (relative difference at most 1e-4) and the ending that each example gets, by the sum and by the mean of its losses.
"""

import argparse
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import torch
import transformers as hf

hf.logging.set_verbosity_error()
hf.logging.disable_progress_bar()

VOCAB, LENGTH = 211, 40
FAMILIES = {
    "gpt2": "",
    "gpt2-untied": "tied_embeddings = false",
    "llama": 'family = "llama"\nkv_heads = 2\nfeed_forward = 100\ntied_embeddings = false',
    "qwen2": 'family = "llama"\nkv_heads = 2\nfeed_forward = 100\nqkv_bias = true',
    "qwen3": 'family = "llama"\nkv_heads = 2\nhead_dim = 20\nfeed_forward = 100\nqk_norm = true',
}
DECK = """
[model]
{family}
layers = 3
hidden = 48
heads = 6
sequence = {length}
vocab = {vocab}
[train]
steps = 30
global_batch = 8
micro_batch = 2
[optimizer]
lr = 1e-2
warmup = 5
[data]
format = "llmc"
files = ["train.bin"]
[checkpoint]
folder = "saved"
[run]
peak_tflops = 1.0
"""


def chain(count, generator):
    """Tokens of which each makes three others likely, so that there is something to learn."""
    tokens = [generator.randrange(VOCAB)]
    while len(tokens) < count:
        likely = (7 * tokens[-1] + 3) % VOCAB
        tokens.append((likely + generator.randrange(3)) % VOCAB if generator.random() < 0.9 else generator.randrange(VOCAB))
    return tokens


def write_tokens(path, tokens):
    path.write_bytes(struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253) + struct.pack(f"<{len(tokens)}H", *tokens))


def write_choices(path, examples):
    stream, longest = [], 0
    for number, (label, context, endings) in enumerate(examples):
        words = [65535, 0, number, label, len(endings), len(context), *context]
        for ending in endings:
            words += [len(ending), *ending]
        words[1] = 2 * len(words)
        longest = max(longest, words[1])
        stream += words
    path.write_bytes(
        struct.pack("<256i", 20240522, 1, len(examples), longest, *[0] * 252) + struct.pack(f"<{len(stream)}H", *stream)
    )


def made_choices(count, generator):
    """The right ending continues the chain. The others have other lengths and begin elsewhere."""
    examples = []
    for _ in range(count):
        context = chain(generator.randint(3, 20), generator)
        label = generator.randrange(4)
        endings = [chain(generator.randint(2, 15), generator) for _ in range(4)]
        whole = list(context)
        for _ in range(generator.randint(2, 15)):
            whole.append((7 * whole[-1] + 3 + generator.randrange(3)) % VOCAB)
        endings[label] = whole[len(context) :]
        examples.append((label, context, endings))
    return examples


def losses_of(model, tokens):
    """-log p of every token but the first."""
    row = torch.tensor([tokens])
    with torch.no_grad():
        logits = model(row[:, :-1]).logits.float()[0]
    return torch.nn.functional.cross_entropy(logits, row[0, 1:], reduction="none").double()


def perplexity_of(model, tokens):
    """Over windows as kzero cuts them, the last one shorter."""
    losses = [losses_of(model, tokens[at : at + LENGTH + 1]) for at in range(0, len(tokens) - 1, LENGTH)]
    return torch.cat(losses).mean().exp().item()


def choices_of(model, examples):
    sums, means = [], []
    for _, context, endings in examples:
        found = [losses_of(model, context + ending)[len(context) - 1 :] for ending in endings]
        sums.append(min(range(4), key=lambda i: found[i].sum().item()))
        means.append(min(range(4), key=lambda i: found[i].mean().item()))
    return sums, means


def compare(kzero, ranks, family):
    generator = random.Random(family)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def run(*arguments, ranks=1):
            done = subprocess.run(["mpiexec", "-n", str(ranks), kzero, *arguments], cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{arguments}: {done.stdout}{done.stderr}")
            return done.stdout

        text, examples = chain(1234, generator), made_choices(100, generator)
        write_tokens(folder / "train.bin", chain(20000, generator))
        write_tokens(folder / "text.bin", text)
        write_choices(folder / "choices.bin", examples)
        (folder / "deck.toml").write_text(DECK.format(family=FAMILIES[family], length=LENGTH, vocab=VOCAB))
        run("train", "deck.toml", ranks=ranks)
        run("convert", "saved", "exported")
        model = hf.AutoModelForCausalLM.from_pretrained(
            folder / "exported", torch_dtype=torch.float32, attn_implementation="eager"
        ).eval()
        perplexity, (sums, means) = perplexity_of(model, text), choices_of(model, examples)
        is_same = True
        for source in ("saved", "exported"):
            scored, chosen = json.loads(run("evaluate", source, "text.bin", "choices.bin", "--json", ranks=ranks))["results"]
            difference = abs(scored["perplexity"] / perplexity - 1)
            other = sum(a != b for a, b in zip(chosen["chosen"] + chosen["chosen_normalized"], sums + means))
            print(
                f"{family:12} {source:9} perplexity {scored['perplexity']:.6f}, transformers {perplexity:.6f}, difference {difference:.1e}; "
                f"accuracy {chosen['accuracy']:.2f}, normalized {chosen['accuracy_normalized']:.2f}, {other} of {2 * len(sums)} choices differ"
            )
            is_same = is_same and difference <= 1e-4 and other == 0
        return is_same


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kzero", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--families", nargs="*", default=list(FAMILIES), choices=FAMILIES)
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    results = [compare(arguments.kzero, arguments.ranks, family) for family in arguments.families]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
