#!/usr/bin/env python3
"""Exports of the reference cases, opened by transformers.

    VENV/bin/python compare_reference.py --kzero build/release/kzero [--cases olmo2 gemma3 ...] [--ranks 2]

VENV has torch, transformers and h5py; it is run by hand, as compare.py is. kzero trains each case of tests/data/reference and
exports the start and the end. transformers opens both folders. The logits of the start on the first sequences are compared with
those that the case has, and the logits of the end with those of the class with the case's trained weights: none may be off by
more than 1e-4 of the largest, and no tensor may be missing or unexpected.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy
import safetensors.torch
import torch
import transformers as hf

hf.logging.set_verbosity_error()
hf.logging.disable_progress_bar()

REFERENCE = pathlib.Path(__file__).resolve().parents[1] / "data" / "reference"
CASES = (
    "mistral_window olmo2 olmo3 gemma3 apertus smollm3 granite granite_tied qwen3_moe olmoe mixtral qwen2_moe glm4_moe".split()
)
LIMIT = 1e-4


def deck_of(case, folder, settings):
    of_biases = f"router_bias_rate = {settings['router_bias_rate']}" if "router_bias_rate" in settings else ""
    return f"""
[model]
config = "{REFERENCE / case}"
initial = "{REFERENCE / case}"
{of_biases}
[train]
steps = {settings["steps"]}
global_batch = {settings["global_batch"]}
micro_batch = {settings.get("micro_batch", settings["global_batch"])}
[optimizer]
lr = {settings["lr"]}
min_lr = {settings["min_lr"]}
warmup = {settings["warmup"]}
beta1 = {settings["beta1"]}
beta2 = {settings["beta2"]}
eps = {settings["eps"]}
weight_decay = {settings["weight_decay"]}
clip = {settings["clip"]}
[data]
files = ["{REFERENCE / case}.tokens.bin"]
format = "llmc"
order = "sequential"
[checkpoint]
folder = "{folder / "trained"}"
"""


def opened(folder):
    """The model in a folder, and the names that do not fit it."""
    model, info = hf.AutoModelForCausalLM.from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager", dtype=torch.float32
    )
    return model.eval(), sorted(info["missing_keys"]) + sorted(info["unexpected_keys"])


def with_weights(case, weights, folder):
    """A folder with the case's model and other weights, by their names in files: in memory transformers joins experts."""
    folder.mkdir()
    shutil.copy(REFERENCE / case / "config.json", folder)
    stored = safetensors.torch.load_file(REFERENCE / case / "model.safetensors")
    safetensors.torch.save_file(stored | weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def distance(ours, theirs):
    return float((ours - theirs).abs().max() / theirs.abs().max())


def compare(arguments, case, folder):
    """Prints a line; returns whether all agrees."""

    def kzero(*words, launch=()):
        subprocess.run([*launch, arguments.kzero, *words], check=True, stdout=subprocess.DEVNULL)

    with h5py.File(f"{REFERENCE / case}.h5") as file:
        settings = {key: value.item() if hasattr(value, "item") else value for key, value in file.attrs.items()}
        settings["lr"] = float(file.attrs["lr"])
        logits = torch.tensor(file["logits"][()])
        final = {key: torch.tensor(value[()]) for key, value in file["final"].items()}
    words = numpy.frombuffer((REFERENCE / f"{case}.tokens.bin").read_bytes()[1024:], "<u2").astype("i8")
    tokens = torch.tensor(words[: logits.shape[0] * settings["sequence"]]).view(logits.shape[0], -1)

    deck = folder / "deck.toml"
    deck.write_text(deck_of(case, folder, settings))
    kzero("train", deck, launch=("mpiexec", "-n", str(arguments.ranks)))
    kzero("convert", REFERENCE / case, folder / "start", "--deck", deck)
    for name, checkpoints in (("start_out", "start"), ("end_out", "trained")):
        kzero("convert", folder / checkpoints, folder / name)
    with torch.no_grad():
        model, strangers = opened(folder / "start_out")
        start = distance(model(tokens).logits, logits)
        model, more = opened(folder / "end_out")
        end = model(tokens).logits
        model, _ = opened(with_weights(case, final, folder / "final"))
        end = distance(end, model(tokens).logits)
    agrees = start < LIMIT and end < LIMIT and not strangers and not more
    print(
        f"{case:16} logits of the start off by {start:.1e}, after training by {end:.1e}; "
        f"missing or unexpected {strangers + more or 'none'}{'' if agrees else '  DIFFERS'}",
        flush=True,
    )
    return agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kzero", required=True, type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    agrees = True
    for case in arguments.cases:
        with tempfile.TemporaryDirectory() as folder:
            agrees &= compare(arguments, case, pathlib.Path(folder))
    sys.exit(0 if agrees else 1)


if __name__ == "__main__":
    main()
