"""Compares the program's tokenizer with the tokenizers library for other rules than those of the tokenizers in tests/data.

    python3 compare_rules.py ENCODE_LINES TOKENIZER.json COUNT

Each case changes the rules of the given tokenizer. Exits with 1 at a difference, with 77 if this Python lacks the library.
"""

import itertools
import json
import random
import sys
import tempfile
from pathlib import Path

from compare_wheel import SPACES, differences, printed, random_text, word_ends

MISSING = [4, 6, 19, 20, 22, 29, 192, 193, 241, 242, *range(245, 256)]  # bytes that SmolLM2's vocabulary lacks

# DeepSeek V3, and DeepSeek LLM: what is between their matches is a word too.
DEEPSEEK = (
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+",
)
OLDER_DEEPSEEK = ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+")
POSSESSIVE = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s*[\r\n]|\s+(?!\S)|\s"
BACKTRACKING = r"a*(?:ab|a)?b{1,2}(?:c|cc)?|\d{2,}[-x]?|(?i:[a-f]k?s|k[0-9])|\D\S{2}(?!\p{Ll}|\p{M})|\P{L}[^\S\n]+"

ADDED = [f"<{number}>" for number in range(32)]


def byte_level(**options):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True, **options}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": steps}


def digits(single):
    return {"type": "Digits", "individual_digits": single}


def split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def template(single, **ids):
    special = {text: {"id": text, "ids": one, "tokens": [text] * len(one)} for text, one in ids.items()}
    pieces = [
        {"Sequence": {"id": "A", "type_id": 0}} if text == "A" else {"SpecialToken": {"id": text, "type_id": 0}}
        for text in single
    ]
    pair = [*pieces, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": pieces, "pair": pair, "special_tokens": special}


def without_bytes(rules, missing):
    """The rules, whose vocabulary lacks the tokens of some bytes and all that contain them."""
    from prepare.rules import SYMBOLS

    gone = {symbol for symbol, byte in SYMBOLS.items() if byte in missing}
    texts = [text for text in rules["model"]["vocab"] if not gone & set(text)]
    merges = [merge for merge in rules["model"]["merges"] if not gone & set("".join(merge))]
    model = {**rules["model"], "vocab": {text: number for number, text in enumerate(texts)}, "merges": merges}
    return {**rules, "model": model, "added_tokens": []}


def cases(rules):
    """{name: rules}."""
    from prepare.patterns import GPT2, GPT4O, LLAMA3, QWEN2, TEKKEN

    lacking = without_bytes(rules, MISSING)
    unknown = {**lacking["model"], "unk_token": "the"}
    special = {"id": 768, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    begun = {**rules, "added_tokens": [*rules["added_tokens"], {**special, "special": True}]}
    truncation = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    padding = {
        "strategy": {"Fixed": 48},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "!",
    }
    words = {
        "digits one by one": sequence(digits(True), byte_level()),
        "runs of digits": sequence(digits(False), byte_level()),
        "digits and a space": sequence(digits(True), byte_level(add_prefix_space=True)),
        "a space": byte_level(add_prefix_space=True),
        "one word": byte_level(use_regex=False),
        "one word and a space": byte_level(use_regex=False, add_prefix_space=True),
        "a pattern after digits": sequence(digits(True), split(LLAMA3), byte_level(use_regex=False)),
        "a pattern before digits": sequence(split(LLAMA3), digits(True), byte_level(use_regex=False)),
        "two patterns": sequence(split(QWEN2), byte_level()),
        "all that does not match is removed": sequence(split(LLAMA3, "Removed", True), byte_level(use_regex=False)),
        "GPT-2's pattern": sequence(split(GPT2), byte_level(use_regex=False)),
        "a ByteLevel in a sequence": sequence(byte_level()),
        "Mistral's pattern": sequence(split(TEKKEN), byte_level(use_regex=False)),
        "GPT-4o's pattern": sequence(split(GPT4O), byte_level(use_regex=False)),
        "DeepSeek's patterns": sequence(*map(split, DEEPSEEK), byte_level(use_regex=False)),
        "DeepSeek's older patterns": sequence(*map(split, OLDER_DEEPSEEK), digits(True), byte_level(use_regex=False)),
        "Falcon's digits": sequence(split("[0-9][0-9][0-9]"), byte_level()),
        "a pattern that gives nothing back": sequence(split(POSSESSIVE), byte_level(use_regex=False)),
        "a pattern that gives much back": sequence(split(BACKTRACKING), byte_level(use_regex=False)),
        "only letters are kept": sequence(split(r"[\p{L}\p{M}]+", "Removed", True), byte_level(use_regex=False)),
    }
    frames = {
        "a beginning": {"type": "Sequence", "processors": [byte_level(), template(["<s>", "A"], **{"<s>": [768]})]},
        "a beginning and an end": template(["<s>", "the", "A", "the"], **{"<s>": [768], "the": [300, 301]}),
        "Roberta": {
            "type": "RobertaProcessing",
            "sep": ["x", 9],
            "cls": ["y", 8],
            "trim_offsets": True,
            "add_prefix_space": False,
        },
        "Bert": {"type": "BertProcessing", "sep": ["x", 9], "cls": ["y", 8]},
        "no frame": template(["A"]),
    }
    flags = itertools.product((False, True), repeat=5)
    stretching = [
        {
            "id": 768 + number,
            "content": ADDED[number],
            **dict(zip(("single_word", "lstrip", "rstrip", "normalized", "special"), one)),
        }
        for number, one in enumerate(flags)
    ]
    return {
        **{name: {**rules, "pre_tokenizer": value} for name, value in words.items()},
        "added tokens of all kinds": {**rules, "added_tokens": [*rules["added_tokens"], *stretching]},
        **{name: {**begun, "post_processor": value} for name, value in frames.items()},
        "no normalizer": {**rules, "normalizer": {"type": "Sequence", "normalizers": []}},
        "a normalizer": {**rules, "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]}},
        "missing bytes": lacking,
        "missing bytes and whole words": {**lacking, "model": {**lacking["model"], "ignore_merges": True}},
        "unknown bytes": {**lacking, "model": unknown},
        "joined unknown bytes": {**lacking, "model": {**unknown, "fuse_unk": True}},
        "truncation": {**rules, "truncation": truncation},
        "padding": {**rules, "truncation": truncation, "padding": padding},
    }


def compare(program, rules, texts, folder):
    """The number of texts whose tokens or words differ."""
    from prepare.tokenizer import tokens_around
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    path.write_text(json.dumps(rules))
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokens, framed = ([one.ids for one in tokenizer.encode_batch(texts, add_special_tokens=all)] for all in (False, True))
    different = differences("tokens", texts, tokens, printed(program, path, "changes-text", texts))
    before, _ = tokens_around(tokenizer)
    bare = [i for i, ids in enumerate(tokens) if ids[: len(before)] != before or not before]  # the program adds none twice
    some = [texts[i] for i in bare]
    different += differences("all tokens", some, [framed[i] for i in bare], printed(program, path, "framed", some))
    words = [word_ends(tokenizer, text) for text in texts]
    return different + differences("words", texts, words, printed(program, path, "words", texts))


def main(program, path, count):
    try:
        import tokenizers
    except ImportError:
        print(f"{sys.executable} has no tokenizers: bash cmake/debian.sh installs it in .deps/venv")
        return 77
    sys.path.insert(0, str(Path(__file__).parents[2] / "input"))
    r = random.Random(7)
    texts = [random_text(r) for _ in range(int(count))]
    texts += [
        "".join(f"{random_text(r)[:3]}{r.choice(ADDED)}{r.choice(SPACES)}" for _ in range(r.randint(1, 9))) for _ in texts[::2]
    ]
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, rules in cases(json.loads(Path(path).read_bytes())).items():
            found = compare(program, rules, texts, Path(folder))
            print(
                f"{name}: {found} of {len(texts)} texts have other tokens or words than tokenizers {tokenizers.__version__} gives"
            )
            different += found
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
