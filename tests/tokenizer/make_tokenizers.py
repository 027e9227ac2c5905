"""Trains the tokenizers of tests/data/tokenizer on the tree's own text, one for each split, as tokenizers 0.23.3 does.

Usage:

    python3 make_tokenizers.py ROOT FOLDER
"""

import json
import sys
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

SIZE = 768
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")


def after_split(pattern):
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )


def trained(texts, split, special, normalizer=None, size=SIZE, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def with_word(tokenizer, word):
    """With a word to which no merges lead: "ignore_merges" is for these."""
    rules = json.loads(tokenizer.to_str())
    rules["model"]["vocab"][word] = len(rules["model"]["vocab"])
    return Tokenizer.from_str(json.dumps(rules))


def with_bytes(texts, size=2 * SIZE, pre_tokenizer=None):
    """A BPE of characters that falls back to bytes, by the rules of Llama 2 and TinyLlama, whose words `pre_tokenizer` limits only in
    training."""
    special = ["<unk>", "<s>", "</s>"]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special + pieces, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    rules = json.loads(tokenizer.to_str())
    rules["added_tokens"] = [token for token in rules["added_tokens"] if token["content"] in special]
    return Tokenizer.from_str(json.dumps({**rules, "pre_tokenizer": None}))


def main(root, folder):
    texts = [path.read_text() for path in sorted((root / "docs").glob("*.md"))]
    gpt2 = trained(texts, pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"])
    llama3 = with_word(trained(texts, after_split(LLAMA3), [], size=SIZE - 1, ignore_merges=True), "\u0120zebra")
    llama3.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|end_of_text|>>"])
    qwen2 = trained(texts, after_split(QWEN2), [], normalizers.NFC())
    qwen2.add_special_tokens(["<|endoftext|>"])
    qwen2.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("e\u0301t\u0065\u0301", normalized=True)])
    words = pre_tokenizers.Metaspace(prepend_scheme="never", split=True)
    llama2 = with_bytes([line for text in texts for line in text.splitlines()], pre_tokenizer=words)
    for name, tokenizer in (("gpt2", gpt2), ("llama3", llama3), ("qwen2", qwen2), ("llama2", llama2)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(folder / name / "tokenizer.json"), pretty=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
