#!/usr/bin/env python3
"""Compares six steps of preference losses with TRL: DPO, IPO, SimPO and ORPO, with and without adapters.

    VENV/bin/python compare_preferences.py --kzero build/release/kzero [--losses dpo ipo simpo orpo] [--ranks 2]

VENV has torch, transformers, peft and trl. It is run by hand, after a change of src/kernels/preference.cpp or src/engine. A small
random Llama is saved by transformers. kzero writes the reference, packs the pairs and trains; TRL's own loss functions compute padded
batches of the same pairs in one process on the CPU. Compared: losses and gradient norms of all steps.

TRL's ORPO takes its cross-entropy over the prompt, too, and as a mean over the tokens of a batch; so this compares nll = 0 for "orpo".
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import types
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "input"))

import torch
import transformers as hf
from compare import COMMON, RATE, train
from compare_packed import write
from peft import LoraConfig, get_peft_model
from trl.experimental.cpo import CPOTrainer
from trl.experimental.orpo import ORPOTrainer
from trl.trainer.dpo_trainer import DataCollatorForPreference, DPOTrainer

STEPS, BATCH, LENGTH, PAIRS = 6, 4, 40, 90
LOSSES = {"dpo": dict(beta=0.3), "ipo": dict(beta=0.2), "simpo": dict(beta=2.0, gamma=0.5), "orpo": dict(beta=0.4, nll=0.0)}
RANK, ALPHA, TARGETS = 4, 8.0, ["q_proj", "down_proj"]


def random_pairs(draw, vocab):
    some = lambda: [draw.randrange(1, vocab) for _ in range(draw.randint(1, 9))]
    return [dict(prompt_ids=some(), chosen_ids=some(), rejected_ids=some()) for _ in range(PAIRS)]


def documents_of(pair):
    prompt = [(token, False) for token in pair["prompt_ids"]]
    return [prompt + [(token, True) for token in pair[key]] for key in ("chosen_ids", "rejected_ids")]


def kzero_steps(arguments, loss, initial, folder, adapter):
    """(pairs, loss, gradient norm) of each step."""
    docs, reference = folder / "pairs.docs", folder / "pairs.logprobs"
    keys = "".join(f"{key} = {value}\n" for key, value in LOSSES[loss].items())
    if loss in ("dpo", "ipo"):
        command = [arguments.kzero, "evaluate", initial, docs, "--log-probs", reference]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        keys += f'reference = "{reference}"\n'
    lora = f'[lora]\nrank = {RANK}\nalpha = {ALPHA}\ntargets = {TARGETS}\ninitial = "{adapter}"\n'.replace("'", '"')
    steps = train(
        arguments,
        folder,
        f'[model]\nconfig = "{initial}"\ninitial = "{initial}"\nsequence = {LENGTH}\n{lora if adapter else ""}'
        f'[preference]\nloss = "{loss}"\n{keys}'
        f"[train]\nsteps = {STEPS}\nglobal_batch = {BATCH}\nmicro_batch = 1\n"
        f'[optimizer]\nlr = {RATE}\nschedule = "constant"\nweight_decay = 0.0\n'
        f'[data]\nfiles = ["{docs}"]\nformat = "pairs"\norder = "sequential"\n'
        f'[run]\nmetrics = "{folder}/metrics.jsonl"\n',
    )
    return [(r["pairs"], r["loss"], r["grad_norm"]) for r in steps]


def log_probs(model, batch):
    """The sums of ln p of the targets of each row, and their numbers. TRL's collator puts chosen rows first."""
    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False).logits
    labels = batch["input_ids"].masked_fill(batch["completion_mask"] == 0, -100)
    sums = CPOTrainer.get_batch_logps(logits, labels, average_log_prob=False)
    return sums, batch["completion_mask"].sum(1)


def their_loss(loss, model, batch, reference):
    """The mean over the pairs of a batch, by TRL's functions."""
    sums, counts = log_probs(model, batch)
    on_cpu = types.SimpleNamespace(device=torch.device("cpu"))
    beta = LOSSES[loss]["beta"]
    if loss in ("simpo", "orpo"):
        chosen, rejected = (sums / counts).chunk(2)
        if loss == "orpo":
            return -ORPOTrainer.odds_ratio_loss(types.SimpleNamespace(beta=beta, accelerator=on_cpu), chosen, rejected)[
                0
            ].mean()
        terms = types.SimpleNamespace(
            beta=beta, simpo_gamma=LOSSES[loss]["gamma"], loss_type="simpo", label_smoothing=0, alpha=0.0, accelerator=on_cpu
        )
        return CPOTrainer.cpo_loss(terms, chosen, rejected)[0].mean()
    return dpo_loss(loss, model, batch, reference, beta)


def dpo_loss(loss, model, batch, reference, beta):
    """DPOTrainer's own loss, with a model that gives what its patched forward gives."""
    chosen, rejected = reference.chunk(2)

    def forward(input_ids, attention_mask, labels, **_):
        logits = model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits[:, :-1]
        wanted = labels[:, 1:]
        found = torch.log_softmax(logits, -1).gather(-1, wanted.clamp(min=0)[..., None])[..., 0] * (wanted != -100)
        others = dict.fromkeys(("entropy", "mean_logits"), torch.zeros_like(found))
        return types.SimpleNamespace(log_probs=found, is_top1=found > 0, **others)

    terms = mock.MagicMock(
        aux_loss_enabled=False,
        ld_alpha=None,
        precompute_ref_logps=True,
        f_divergence_type="reverse_kl",
        loss_types=[{"dpo": "sigmoid", "ipo": "ipo"}[loss]],
        loss_weights=[1.0],
        beta=beta,
        use_weighting=False,
        _total_train_tokens=0,
        _tp_size=1,
    )
    terms.accelerator.device = torch.device("cpu")
    terms.accelerator.gather_for_metrics = terms.accelerator.gather = lambda value: value
    inputs = {**batch, "ref_chosen_logps": chosen, "ref_rejected_logps": rejected}
    return DPOTrainer._compute_loss(terms, mock.MagicMock(side_effect=forward), inputs, False)


def their_steps(loss, model, reference_model, pairs, counts):
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=RATE, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0
    )
    collate, at = DataCollatorForPreference(pad_token_id=0), 0
    for count in counts:
        batch = collate(pairs[at : at + count])
        at += count
        with torch.no_grad():
            reference, _ = log_probs(reference_model, batch)
        value = their_loss(loss, model, batch, reference)
        optimizer.zero_grad()
        value.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield value.item(), norm.item()


def compare(arguments, loss, has_adapter, folder):
    """Prints a line; returns whether all agrees."""
    torch.manual_seed(7)
    initial = folder / "initial"
    hf.LlamaForCausalLM(hf.LlamaConfig(**dict(COMMON, pad_token_id=None))).save_pretrained(initial)
    load = lambda: hf.AutoModelForCausalLM.from_pretrained(initial, dtype=torch.float32)
    pairs, model, adapter = random_pairs(random.Random(5), COMMON["vocab_size"]), load(), None
    if has_adapter:
        config = LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=TARGETS, task_type="CAUSAL_LM")
        model, adapter = get_peft_model(model, config), folder / "adapter"
        model.save_pretrained(adapter)  # its B is zero, so that the reference is the base
    write(folder / "pairs.docs", [document for pair in pairs for document in documents_of(pair)])
    with open(folder / "pairs.docs", "r+b") as file:
        file.seek(12)
        file.write(b"\1")
    ours = kzero_steps(arguments, loss, initial, folder, adapter)
    theirs = list(their_steps(loss, model.train(), load(), pairs, [one[0] for one in ours]))
    losses = max(abs(a[1] - b[0]) for a, b in zip(ours, theirs, strict=True))
    norms = max(abs(a[2] / b[1] - 1) for a, b in zip(ours, theirs))
    agrees = losses < 1e-5 and norms < 1e-4
    print(
        f"{loss:6}{' with adapters' if has_adapter else '':14} {sum(one[0] for one in ours)} pairs in {STEPS} steps, losses off by "
        f"{losses:.1e} at most, gradient norms by {norms:.1e} of them{'' if agrees else '  DIFFERS'}",
        flush=True,
    )
    return agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kzero", required=True, type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--losses", nargs="+", choices=sorted(LOSSES), default=list(LOSSES))
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    agrees = True
    for loss in arguments.losses:
        for has_adapter in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                agrees &= compare(arguments, loss, has_adapter, pathlib.Path(folder))
    sys.exit(0 if agrees else 1)


if __name__ == "__main__":
    main()
