"""Compares the program's BPE with byte fallback with the tokenizers library, by the rules of Llama 2, Gemma, Mistral and others.

    python3 compare_pieces.py ENCODE_LINES TOKENIZER.json COUNT

The tokenizer has the rules of Llama 2; each case changes them. Texts are random ones, and in some cases all characters of
Unicode. Exits with 1 at a difference, with 77 if this Python lacks the library.
"""

import json
import random
import sys
import tempfile
from pathlib import Path

from compare_rules import template
from compare_wheel import differences, printed, random_text

MARK = "\u2581"
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
PREPEND = {"type": "Prepend", "prepend": MARK}
AT_SPACES = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
SPELLED_BACK = [{"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
EVERY = ("Llama 2", "Gemma", "Metaspace, first, whole", "merges across words")


def normalizers(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


def decoders(*steps):
    return {"type": "Sequence", "decoders": [*SPELLED_BACK, *steps]}


def strip(count):
    return {"type": "Strip", "content": " ", "start": count, "stop": 0}


def metaspace(scheme, split, **others):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": split, **others}


def added(*contents, first=1536, **flags):
    usual = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    return [{"id": first + number, "content": content, **usual, **flags} for number, content in enumerate(contents)]


def with_words(model, *words):
    """The model with words to which no merges lead."""
    more = {word: len(model["vocab"]) + number for number, word in enumerate(words)}
    return {**model, "vocab": {**model["vocab"], **more}}


def cases(rules):
    """{name: rules}."""
    model, tokens = rules["model"], rules["added_tokens"]
    gemma = {"normalizer": REPLACE, "pre_tokenizer": AT_SPACES, "decoder": decoders()}
    begun = {"post_processor": template(["<s>", "A"], **{"<s>": [1]})}
    # As in Gemma: runs of line ends and of marks; a byte; what a text may contain although it is normalized or not.
    more = added("\n\n", "\n\n\n", MARK * 2, MARK * 3, "<0x41>x", "<0xZZ>", "a b", "the")
    late = added("<a b>", " zebra", "\u00e9t\u00e9", normalized=True)
    marks = {f"Metaspace, {scheme}, {'split' if split else 'whole'}": metaspace(scheme, split)
             for scheme in ("always", "first", "never") for split in (True, False)}  # fmt: skip
    marks["Metaspace of old files"] = {"type": "Metaspace", "replacement": MARK, "add_prefix_space": True}
    marks["Metaspace of old files, first"] = metaspace("first", False, add_prefix_space=True)
    late_marks = {"normalizer": None, "pre_tokenizer": marks["Metaspace, first, whole"]}
    whole = {"model": {**with_words(model, MARK + "zebra", "zebra", MARK + "the" + MARK + "rank"), "ignore_merges": True}}
    changes = {
        "Llama 2": {},
        "TinyLlama": begun,
        "Llama 2, normalized special tokens": {"added_tokens": [{**token, "normalized": True} for token in tokens]},
        "Prepend after Replace": {"normalizer": normalizers(REPLACE, PREPEND)},
        "Gemma": {**gemma, **begun, "added_tokens": [*tokens, *more]},
        "Gemma, normalized tokens": {**gemma, "added_tokens": [*tokens, *late]},
        "Llama 2, normalized tokens": {"added_tokens": [*tokens, *late]},
        "Yi": {"normalizer": normalizers(REPLACE), "decoder": decoders(strip(0))},
        "whole words": whole,
        "whole words, Metaspace": {**whole, "normalizer": None, "pre_tokenizer": marks["Metaspace, always, split"]},
        "Metaspace, added tokens": {**late_marks, **begun, "added_tokens": [*tokens, *more]},
        "Metaspace, normalized tokens": {**late_marks, "added_tokens": [*tokens, *late]},
        "no mark in the vocabulary": {"model": without(model, MARK)},
        **{name: {"normalizer": None, "pre_tokenizer": value} for name, value in marks.items()},
        "Metaspace after nothing": {"normalizer": normalizers(), "pre_tokenizer": marks["Metaspace, first, whole"]},
    }
    return {name: {**rules, **change} for name, change in changes.items()}


def without(model, gone):
    """The model without a character and all that contain it. The last words become others, so that ids have no gaps."""
    words = [word if gone not in word else f"<gone{number}>" for number, word in enumerate(model["vocab"])]
    merges = [merge for merge in model["merges"] if gone not in "".join(merge)]
    return {**model, "vocab": {word: number for number, word in enumerate(words)}, "merges": merges}


def every_character():
    """Texts with all characters but surrogates, which UTF-8 does not have."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    groups = [characters[at : at + 512] for at in range(0, len(characters), 512)]
    return [("", " ")[number % 2].join(group) for number, group in enumerate(groups)]


def ids_of(tokenizer, texts, special):
    parts = (texts[at : at + 64] for at in range(0, len(texts), 64))  # the library needs much memory for a token
    return [one.ids for part in parts for one in tokenizer.encode_batch_fast(part, add_special_tokens=special)]


def bytes_of(texts):
    return [list(text.encode()) for text in texts]


def compare_decoded(program, path, tokenizer, ids):
    """The number of lists of tokens of which the text differs. The library writes U+FFFD for bytes that are not UTF-8."""
    different = 0
    # Version 0.23.3 of the library does not know a special token any more whose text its normalizer changes.
    changed = {
        token["id"] for token in json.loads(path.read_bytes())["added_tokens"] if token["special"] and token["normalized"]
    }
    for mode, plain in (("decoded", False), ("plain", True)):
        if plain:
            ids = [one for one in ids if not changed & set(one)]
        wanted = [tokenizer.decode(one, skip_special_tokens=plain) for one in ids]
        good = [number for number, text in enumerate(wanted) if "\ufffd" not in text]
        some = [ids[number] for number in good]
        found = printed(program, path, mode, some)
        different += differences(mode, some, bytes_of(wanted[number] for number in good), found)
    begin = [32] if stripped(path) else None
    texts = [one[1:] if one[:1] == begin else one for one in printed(program, path, "streamed", some)]
    whole = printed(program, path, "decoded", some)
    return different + differences("streamed", some, whole, texts)


def stripped(path):
    return json.loads(path.read_bytes())["decoder"]["decoders"][-1].get("start") == 1


def compare(program, rules, texts, folder, r):
    """The number of texts that differ."""
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    path.write_text(json.dumps(rules))
    tokenizer = Tokenizer.from_file(str(path))
    tokens, framed = (ids_of(tokenizer, texts, special) for special in (False, True))
    different = differences("tokens", texts, tokens, printed(program, path, "changes-text", texts))
    begun = [ids[:1] == [1] for ids in tokens]
    bare = [number for number in range(len(texts)) if not begun[number]]  # the program adds none twice
    some = [texts[number] for number in bare]
    different += differences("all tokens", some, [framed[number] for number in bare], printed(program, path, "framed", some))
    random_ids = [r.choices(range(tokenizer.get_vocab_size()), k=r.randint(0, 12)) for _ in range(2000)]
    return different + compare_decoded(program, path, tokenizer, [*tokens, *random_ids])


def crossing(rules):
    """The rules with merges that cross the ends of words, as Gemma has them at line ends."""
    from make_tokenizers import with_bytes
    from tokenizers import pre_tokenizers

    texts = [path.read_text() for path in sorted((Path(__file__).parents[2] / "docs").glob("*.md"))]
    cut = pre_tokenizers.Split("e", "merged_with_previous")
    trained = json.loads(with_bytes([text[:2000] for text in texts], 800, pre_tokenizer=cut).to_str())
    return {**rules, "model": trained["model"]}


def main(program, path, count):
    try:
        import tokenizers
    except ImportError:
        print(f"{sys.executable} has no tokenizers: bash cmake/debian.sh installs it in .deps/venv")
        return 77
    r = random.Random(11)
    texts = [random_text(r) for _ in range(int(count))] + [f" {random_text(r)} <s>{MARK}{random_text(r)}" for _ in range(50)]
    rules = json.loads(Path(path).read_bytes())
    all_cases = {**cases(rules), "merges across words": crossing(rules)}
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, changed in all_cases.items():
            given = [*texts, *(every_character() if name in EVERY else [])]
            found = compare(program, changed, given, Path(folder), r)
            print(f"{name}: {found} of {len(given)} texts differ from tokenizers {tokenizers.__version__}", flush=True)
            different += found
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
