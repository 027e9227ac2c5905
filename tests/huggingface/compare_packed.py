#!/usr/bin/env python3
"""Compares eight steps of AdamW on packed documents with transformers and TRL.

    VENV/bin/python compare_packed.py --kzero build/release/kzero [--families gpt2 llama ...] [--ranks 2]

VENV has torch, transformers and trl. It is run by hand, after a change of src/data or of attention. For each family a small random
model is saved by transformers. Random documents with random targets are packed as data.order = "sequential" does it (docs/data.md),
and TRL's collator makes one row of each batch. Compared: losses, gradient norms and numbers of targets of all steps.
"""

import argparse
import pathlib
import random
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "input"))

import torch
import transformers as hf
from compare import BATCH, LENGTH, RATE, models, train
from prepare.document_file import HEADER_BYTES, MAGIC, TARGET, VERSION
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

STEPS = 8


def pack(draw, vocab):
    """Rows of documents [(token, whether it is a target)], each in the first row after the last that holds it whole."""
    rows = [[]]
    while len(rows) <= STEPS * BATCH:
        document = [(draw.randrange(vocab), n > 0 and draw.random() < 0.5) for n in range(draw.randint(2, LENGTH))]
        if sum(map(len, rows[-1])) + len(document) > LENGTH:
            rows.append([])
        rows[-1].append(document)
    return rows[: STEPS * BATCH]


def write(path, documents):
    starts = [0]
    for document in documents:
        starts.append(starts[-1] + len(document))
    head = struct.pack("<8sIIQQ", MAGIC, VERSION, 0, starts[-1], len(documents)).ljust(HEADER_BYTES, b"\0")
    tokens = [token | (TARGET if target else 0) for document in documents for token, target in document]
    path.write_bytes(head + struct.pack(f"<{len(starts)}Q", *starts) + struct.pack(f"<{len(tokens)}I", *tokens))


def kzero_steps(arguments, initial, documents, folder):
    steps = train(
        arguments,
        folder,
        f'[model]\nconfig = "{initial}"\ninitial = "{initial}"\nsequence = {LENGTH}\n'
        f"[train]\nsteps = {STEPS}\nglobal_batch = {BATCH}\nmicro_batch = 1\n"
        f'[optimizer]\nlr = {RATE}\nschedule = "constant"\nweight_decay = 0.0\n'
        f'[data]\nfiles = ["{documents}"]\nformat = "documents"\norder = "sequential"\n'
        f'[run]\nmetrics = "{folder}/metrics.jsonl"\n',
    )
    return [(r["loss"], r["grad_norm"], r["targets"]) for r in steps]


def their_steps(model, rows):
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0)
    collate = DataCollatorForLanguageModeling(pad_token_id=0, padding_free=True)
    for step in range(STEPS):
        examples = []
        for row in rows[step * BATCH : (step + 1) * BATCH]:
            words = [word for document in row for word in document]
            examples.append(
                {
                    "input_ids": [token for token, _ in words],
                    "labels": [token if target else -100 for token, target in words],
                    "seq_lengths": [len(document) for document in row],
                }
            )
        batch = collate(examples)
        loss = model(**batch, use_cache=False).loss  # with its cache, transformers masks no documents
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield loss.item(), norm.item(), int((batch["labels"] != -100).sum())


def compare(arguments, name, config, folder):
    """Prints a line; returns whether all agrees."""
    torch.manual_seed(7)
    initial, rows = folder / "initial", pack(random.Random(5), config.vocab_size)
    hf.AutoModelForCausalLM.from_config(config).save_pretrained(initial)
    write(folder / "packed.docs", [document for row in rows for document in row])
    model = hf.AutoModelForCausalLM.from_pretrained(initial, dtype=torch.float32)
    theirs = list(their_steps(model.train(), rows))
    ours = kzero_steps(arguments, initial, folder / "packed.docs", folder)
    losses = max(abs(a[0] - b[0]) for a, b in zip(ours, theirs, strict=True))
    norms = max(abs(a[1] / b[1] - 1) for a, b in zip(ours, theirs))
    agrees = losses < 1e-5 and norms < 1e-4 and [a[2] for a in ours] == [b[2] for b in theirs]
    print(
        f"{name:16} {sum(b[2] for b in theirs)} targets in {STEPS} steps, losses off by {losses:.1e} at most, gradient norms by "
        f"{norms:.1e} of them{'' if agrees else '  DIFFERS'}"
    )
    return agrees


def main():
    families = {name: config for name, (config, dtype) in models().items() if dtype == torch.float32}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kzero", required=True, type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--families", nargs="+", choices=sorted(families), default=list(families))
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    agrees = True
    for name in arguments.families:
        with tempfile.TemporaryDirectory() as folder:
            agrees &= compare(arguments, name, families[name], pathlib.Path(folder))
    sys.exit(0 if agrees else 1)


if __name__ == "__main__":
    main()
