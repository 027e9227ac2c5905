#!/usr/bin/env python3
"""kzero compared with transformers: folders of models in, one step of training, folders out.

    VENV/bin/python compare.py --kzero build/release/kzero [--families gpt2 llama ...] [--ranks 2]

VENV has torch and transformers, which no other test needs: it is run by hand, after a change of src/convert or src/model.
For each family a small random model is saved by transformers (in several files, tied and untied, in float32 and bfloat16).
kzero takes it as model.initial and model.config, trains one step, and exports. Compared with transformers' own model and
torch's AdamW on the same tokens: the loss before the step, the weights after it, the loss of the exported folder opened by
transformers with kzero's own on it, and what from_pretrained reports as missing or unexpected.
"""

import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import torch
import transformers as hf

hf.logging.set_verbosity_error()
hf.logging.disable_progress_bar()

ROPE = dict(
    rope_type="llama3",
    rope_theta=500.0,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=16,
)
COMMON = dict(
    vocab_size=211,
    hidden_size=48,
    intermediate_size=100,
    num_hidden_layers=3,
    num_attention_heads=6,
    num_key_value_heads=2,
    max_position_embeddings=40,
)
LENGTH, BATCH, RATE = 40, 4, 1e-3
EPSILON = 1e-6  # AdamW's 1e-8 makes a full step of a gradient that is mostly rounding error


def models():
    """Name: the configuration, and the type in which the folder is saved."""
    gpt2 = dict(vocab_size=211, n_embd=48, n_layer=3, n_head=6, n_positions=40, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    yarn = dict(rope_type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=10)
    default = dict(rope_type="default", rope_theta=1e4)
    linear = dict(rope_type="linear", rope_theta=1e6, factor=8.0)
    no_pad = dict(COMMON, pad_token_id=None)  # transformers does not train the row of such a token
    experts = dict(no_pad, num_experts_per_tok=3, router_aux_loss_coef=0.0)  # the loss that balances is kzero's own
    gemma3 = dict(
        no_pad,
        head_dim=16,
        query_pre_attn_scalar=24,
        sliding_window=9,
        layer_types=["sliding_attention"] * 2 + ["full_attention"],
    )
    image = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=4, patch_size=2)
    return {
        "gpt2": (hf.GPT2Config(**gpt2), torch.float32),
        "gpt2-untied": (hf.GPT2Config(**gpt2, tie_word_embeddings=False), torch.float32),
        "llama": (hf.LlamaConfig(**COMMON, rope_parameters=ROPE, tie_word_embeddings=False), torch.float32),
        "llama-tied-bf16": (hf.LlamaConfig(**COMMON, tie_word_embeddings=True), torch.bfloat16),
        "llama-yarn": (hf.LlamaConfig(**COMMON, rope_parameters=yarn), torch.float32),
        "mistral": (hf.MistralConfig(**COMMON, sliding_window=None, head_dim=8), torch.float32),
        "qwen2": (hf.Qwen2Config(**COMMON, tie_word_embeddings=True), torch.float32),
        "qwen3": (hf.Qwen3Config(**COMMON, head_dim=20), torch.float32),
        "qwen3-bf16": (hf.Qwen3Config(**COMMON, head_dim=20, tie_word_embeddings=True), torch.bfloat16),
        "mistral-window": (hf.MistralConfig(**COMMON, sliding_window=7, head_dim=8), torch.float32),
        "olmo2": (hf.Olmo2Config(**no_pad), torch.float32),
        "olmo3": (
            hf.Olmo3Config(
                **dict(no_pad, num_hidden_layers=5),
                sliding_window=6,
                rope_parameters=dict(
                    full_attention=dict(yarn, rope_theta=5e5), sliding_attention=dict(default, rope_theta=5e5)
                ),
            ),
            torch.float32,
        ),
        "gemma3": (
            hf.Gemma3TextConfig(**gemma3, rope_parameters=dict(full_attention=linear, sliding_attention=default)),
            torch.float32,
        ),
        "gemma3-images-bf16": (hf.Gemma3Config(text_config=gemma3, vision_config=image), torch.bfloat16),
        "apertus": (hf.ApertusConfig(**no_pad, rope_parameters=ROPE), torch.float32),
        "apertus-bf16": (hf.ApertusConfig(**no_pad, rope_parameters=ROPE), torch.bfloat16),
        "qwen3-moe": (
            hf.Qwen3MoeConfig(**experts, head_dim=20, num_experts=7, moe_intermediate_size=20, norm_topk_prob=True),
            torch.float32,
        ),
        "qwen2-moe": (
            hf.Qwen2MoeConfig(**experts, num_experts=7, moe_intermediate_size=20, shared_expert_intermediate_size=28),
            torch.float32,
        ),
        "olmoe": (hf.OlmoeConfig(**experts, num_experts=7, norm_topk_prob=False), torch.float32),
        "mixtral-bf16": (hf.MixtralConfig(**experts, num_local_experts=7, sliding_window=9), torch.bfloat16),
        "smollm3": (hf.SmolLM3Config(**dict(no_pad, num_hidden_layers=5)), torch.float32),
        "granite": (
            hf.GraniteConfig(
                **no_pad, attention_multiplier=0.2, embedding_multiplier=6.0, residual_multiplier=0.22, logits_scaling=4.0
            ),
            torch.float32,
        ),
    }


def text_part(folder, config):
    """The class for text of a model with images, opened from its folder."""
    if config.model_type != "gemma3":
        return hf.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    both = hf.Gemma3ForConditionalGeneration.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    model = hf.Gemma3ForCausalLM(both.config.text_config)
    model.model, model.lm_head = both.model.language_model, both.lm_head
    return model.eval()


def loss_of(model, tokens):
    rows = torch.stack([tokens[i * LENGTH : (i + 1) * LENGTH + 1] for i in range(BATCH)])
    logits = model(rows[:, :-1]).logits.float()
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), rows[:, 1:].reshape(-1))


def one_step(model, tokens):
    """The loss before a step of AdamW as kzero takes it: clipped, decay on matrices alone."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [dict(params=matrices, weight_decay=0.1), dict(params=vectors, weight_decay=0.0)],
        lr=RATE,
        betas=(0.9, 0.95),
        eps=EPSILON,
    )
    loss = loss_of(model, tokens)
    loss.backward()
    if model.config.model_type == "gpt2":  # softmax ignores a key bias; its gradient is rounding noise
        for block in model.transformer.h:
            width = model.config.n_embd
            block.attn.c_attn.bias.grad[width : 2 * width] = 0
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def train(arguments, folder, text):
    """The records of the steps of a deck, whose run.metrics is metrics.jsonl in the folder."""
    deck = folder / "deck.toml"
    deck.write_text(text)
    command = ["mpiexec", "-n", str(arguments.ranks), arguments.kzero, "train", deck]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    records = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [r for r in records if r["event"] == "step"]


def kzero_step(arguments, initial, tokens, folder):
    """Runs one step from the weights; returns its loss, and leaves a checkpoint in the folder."""
    (step,) = train(
        arguments,
        folder,
        f'[model]\nconfig = "{initial}"\ninitial = "{initial}"\nsequence = {LENGTH}\n'
        f'[train]\nsteps = 1\nglobal_batch = {BATCH}\n'
        f'[optimizer]\nlr = {RATE}\neps = {EPSILON}\nschedule = "constant"\n'
        f'[data]\nfiles = ["{tokens}"]\nformat = "llmc"\norder = "sequential"\n'
        f'[checkpoint]\nfolder = "{folder}/checkpoints"\n[run]\nmetrics = "{folder}/metrics.jsonl"\n',
    )
    return step["loss"]


def write_tokens(path, tokens):
    header = struct.pack("<256i", 20240801, 7, len(tokens), *[0] * 253)
    path.write_bytes(header + struct.pack(f"<{len(tokens)}I", *tokens.tolist()))


def compare(arguments, name, config, dtype, folder):
    """Prints a line; returns whether all agrees."""
    torch.manual_seed(7)
    has_images = config.model_type == "gemma3"
    new_model = hf.Gemma3ForConditionalGeneration if has_images else hf.AutoModelForCausalLM.from_config
    model = new_model(config).to(dtype)
    initial, exported = folder / "initial", folder / "exported"
    model.save_pretrained(initial, max_shard_size="60KB")
    tokens = torch.randint(0, COMMON["vocab_size"], (BATCH * LENGTH + 1,))
    write_tokens(folder / "tokens.bin", tokens)
    (folder / "again").mkdir()

    # Opened anew: the cast to 16 bits has rounded the model's rotary angles, which no file holds.
    theirs = text_part(initial, config)
    loss = one_step(theirs, tokens)
    ours = kzero_step(arguments, initial, folder / "tokens.bin", folder)
    subprocess.run([arguments.kzero, "convert", folder / "checkpoints", exported], check=True, stdout=subprocess.DEVNULL)
    opened, info = hf.AutoModelForCausalLM.from_pretrained(
        exported, output_loading_info=True, attn_implementation="eager", dtype=torch.float32
    )
    named = dict(opened.named_parameters())
    weights, worst = max(((named[k] - p).norm() / p.norm(), k) for k, p in theirs.named_parameters())
    # From zero, AdamW makes a full step of a gradient that only rotation keeps from being zero.
    allowed = 2e-4 if worst.endswith("k_proj.bias") else 2e-5
    after = abs(kzero_step(arguments, exported, folder / "tokens.bin", folder / "again") - loss_of(opened, tokens).item())
    strangers = sorted(info["missing_keys"]) + sorted(info["unexpected_keys"])
    agrees = abs(ours - loss) < 1e-5 and weights < allowed and after < 1e-5 and not strangers
    print(
        f"{name:18} loss {loss:.6f}, kzero's off by {abs(ours - loss):.1e}; weights after a step by {weights:.1e} ({worst}); "
        f"exported, off by {after:.1e}; missing or unexpected {strangers or 'none'}{'' if agrees else '  DIFFERS'}"
    )
    return agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kzero", required=True, type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--families", nargs="+", choices=sorted(models()), default=list(models()))
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    agrees = True
    for name in arguments.families:
        with tempfile.TemporaryDirectory() as folder:
            agrees &= compare(arguments, name, *models()[name], pathlib.Path(folder))
    sys.exit(0 if agrees else 1)


if __name__ == "__main__":
    main()
