#!/usr/bin/env python3
"""kzero generate compared with transformers' generate: the same greedy tokens.

    VENV/bin/python compare_generate.py --kzero build/release/kzero [--families gpt2 llama ...] [--ranks 2]

VENV has torch and transformers, which no other test needs: it is run by hand, after a change of src/infer or src/model.
For each family a small random model is saved by transformers. Its weights are larger than usual ones, so that the most
probable token is so by more than rounding. kzero continues prompts of several lengths, bytes as tokens, in one batch, until
the model's sequence is full; transformers continues each alone. Then all of it on --ranks tensor-parallel ranks.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers as hf

hf.logging.set_verbosity_error()
hf.logging.disable_progress_bar()

LENGTH = 48
PROMPTS = ["The memory of a", "x", "A longer prompt, of more than thirty bytes.", "Zero"]
COMMON = dict(
    vocab_size=271,
    hidden_size=48,
    intermediate_size=100,
    num_hidden_layers=3,
    num_attention_heads=6,
    num_key_value_heads=2,
    max_position_embeddings=LENGTH,
    initializer_range=0.3,
)
ROPE = dict(
    rope_type="llama3",
    rope_theta=500.0,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=16,
)


def models():
    gpt2 = dict(vocab_size=271, n_embd=48, n_layer=3, n_head=6, n_positions=LENGTH, initializer_range=0.3)
    return {
        "gpt2": hf.GPT2Config(**gpt2),
        "gpt2-untied": hf.GPT2Config(**gpt2, tie_word_embeddings=False),
        "llama": hf.LlamaConfig(**COMMON, rope_parameters=ROPE, tie_word_embeddings=False),
        "llama-tied": hf.LlamaConfig(**COMMON, tie_word_embeddings=True),
        "qwen2": hf.Qwen2Config(**COMMON, tie_word_embeddings=True),
        "qwen3": hf.Qwen3Config(**COMMON, head_dim=20),
    }


def greedy(model, prompt):
    tokens = torch.tensor([list(prompt.encode())])
    made = model.generate(
        tokens, attention_mask=torch.ones_like(tokens), do_sample=False, max_length=LENGTH, eos_token_id=None, pad_token_id=0
    )
    return made[0, tokens.shape[1] :].tolist()


def generated(command, folder):
    lines = "".join(json.dumps({"prompt": p}) + "\n" for p in PROMPTS)
    run = subprocess.run(
        [*command, "generate", folder, "--tokenizer", "bytes", "--prompts", "-", "--temperature", "0", "--json"],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        sys.exit(run.stderr)
    return [json.loads(line)["tokens"] for line in run.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kzero", required=True)
    parser.add_argument("--families", nargs="*", default=list(models()))
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    failures = 0
    for name in arguments.families:
        torch.manual_seed(7)
        model = hf.AutoModelForCausalLM.from_config(models()[name]).float().eval()
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            model.save_pretrained(pathlib.Path(folder))
            expected = [greedy(model, prompt) for prompt in PROMPTS]
            one = generated([arguments.kzero], folder)
            several = generated(["mpiexec", "-n", str(arguments.ranks), arguments.kzero], folder)
        is_equal = one == expected and several == expected
        failures += not is_equal
        print(
            f"{name:12} {sum(map(len, expected))} tokens, {len({t for row in expected for t in row})} different: "
            f"{'equal' if is_equal else 'DIFFERENT'}"
        )
        if not is_equal:
            print(f"  transformers {expected}\n  one rank     {one}\n  {arguments.ranks} ranks      {several}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
