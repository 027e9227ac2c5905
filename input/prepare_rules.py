"""The rules of a tokenizer.json that kzero reproduces, as src/tokenizer/definition.cpp reads them.

prepare.py checks them before it encodes. If kzero refuses a tokenizer, kzero generate cannot show its tokens as text, and kzero
evaluate cannot compute bits per byte. tests/prepare compares both implementations.
"""

import json

from prepare_documents import InputError

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
MOST_ID = 2_000_000


def byte_symbols():
    """The characters that represent the 256 bytes in the vocabulary of byte-level BPE, and their bytes."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{chr(byte): byte for byte in printable}, **{chr(256 + i): byte for i, byte in enumerate(others)}}


SYMBOLS = byte_symbols()


def is_same(a, b):
    """As JSON, where false is not 0."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def refuse(key, value, why):
    raise InputError(f"{key} is {json.dumps(value)[:80]}, but {why}")


def allow(value, key, *allowed):
    if not any(is_same(value, one) for one in allowed):
        refuse(key, value, f"kzero reads only {' or '.join(map(json.dumps, allowed))} there")


def allow_keys(rules, prefix, *known):
    for key, value in rules.items():
        if key not in known:
            refuse(prefix + key, value, "kzero knows no such rule")


def flag(rules, prefix, key, usual):
    value = rules.get(key)
    if value is not None and not isinstance(value, bool):
        refuse(prefix + key, value, "true or false is needed there")
    return usual if value is None else value


def check_id(value, key):
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_ID:
        refuse(key, value, f"an id is a whole number from 0 to {MOST_ID}")


def check_byte_level(rules, prefix, uses_pattern):
    allow_keys(rules, prefix, "type", "add_prefix_space", "trim_offsets", "use_regex")
    if flag(rules, prefix, "use_regex", True) != uses_pattern:
        refuse(
            prefix + "use_regex",
            rules.get("use_regex"),
            "kzero reads one ByteLevel with the pattern of GPT-2 there, or a Split with another pattern and a ByteLevel without one",
        )
    if flag(rules, prefix, "add_prefix_space", True) and not uses_pattern:
        refuse(prefix + "add_prefix_space", True, "only false is read after a Split")


def check_pre_tokenizer(rules):
    key = "pre_tokenizer"
    if isinstance(rules, dict) and rules.get("type") == "ByteLevel":
        check_byte_level(rules, key + ".", True)
        return
    steps = rules.get("pretokenizers") if isinstance(rules, dict) and rules.get("type") == "Sequence" else None
    if not isinstance(steps, list) or len(steps) != 2 or not all(isinstance(step, dict) for step in steps):
        refuse(key, rules, "kzero reads only a ByteLevel there, or a Sequence of Split and ByteLevel")
    allow_keys(rules, key + ".", "type", "pretokenizers")
    split, prefix = steps[0], key + ".pretokenizers[0]."
    allow_keys(split, prefix, "type", "pattern", "behavior", "invert")
    for name, wanted in (("type", "Split"), ("behavior", "Isolated"), ("invert", False)):
        allow(split.get(name), prefix + name, wanted)
    if split.get("pattern") not in ({"Regex": LLAMA3}, {"Regex": QWEN2}):
        refuse(prefix + "pattern", split.get("pattern"), "kzero has only the patterns of Llama 3 and Qwen 2")
    allow(steps[1].get("type"), key + ".pretokenizers[1].type", "ByteLevel")
    check_byte_level(steps[1], key + ".pretokenizers[1].", False)


def check_model(model):
    """Returns the vocabulary."""
    if not isinstance(model, dict):
        refuse("model", model, "an object is needed there")
    allow_keys(
        model,
        "model.",
        "type",
        "dropout",
        "unk_token",
        "continuing_subword_prefix",
        "end_of_word_suffix",
        "fuse_unk",
        "byte_fallback",
        "ignore_merges",
        "vocab",
        "merges",
    )
    allow(model.get("type"), "model.type", None, "BPE")
    allow(model.get("dropout"), "model.dropout", None, 0.0)
    allow(model.get("byte_fallback"), "model.byte_fallback", None, False)
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        allow(model.get(key), "model." + key, None, "")
    flag(model, "model.", "ignore_merges", False)
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, dict):
        refuse("model.vocab", vocabulary, "an object is needed there")
    ids = set()
    for text, number in sorted(vocabulary.items()):
        key = f"model.vocab.{text[:80]}"
        check_id(number, key)
        if not text or number in ids:
            refuse(key, number, "another token has this id too" if text else "a token has at least one byte")
        ids.add(number)
    for symbol, byte in sorted(SYMBOLS.items(), key=lambda item: item[1]):
        if symbol not in vocabulary:
            raise InputError(f"model.vocab has no token for byte {byte}, but kzero needs one for each")
    check_merges(model.get("merges"), vocabulary)
    return vocabulary


def check_merges(merges, vocabulary):
    if not isinstance(merges, list):
        refuse("model.merges", merges, "a list is needed there")
    for number, merge in enumerate(merges):
        key = f"model.merges[{number}]"
        if isinstance(merge, str) and merge.startswith("#version"):
            continue
        sides = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(sides, list) or len(sides) != 2 or not all(isinstance(side, str) for side in sides):
            refuse(key, merge, "a merge is two texts, in a list or with one space between them")
        for text in (*sides, "".join(sides)):
            if text not in vocabulary:
                refuse(key, merge, f"model.vocab has no {json.dumps(text)}")


def check_added(tokens, vocabulary):
    if tokens is None:
        return
    if not isinstance(tokens, list):
        refuse("added_tokens", tokens, "a list is needed there")
    contents, following = set(), len(vocabulary)
    for number, token in enumerate(tokens):
        prefix = f"added_tokens[{number}]."
        if not isinstance(token, dict):
            refuse(prefix[:-1], token, "an object is needed")
        allow_keys(token, prefix, "id", "content", "single_word", "lstrip", "rstrip", "normalized", "special")
        for key in ("single_word", "lstrip", "rstrip"):
            allow(token.get(key), prefix + key, False)
        check_id(token.get("id"), prefix + "id")
        content = token.get("content")
        if not isinstance(content, str):
            refuse(prefix + "content", content, "a text is needed there")
        flag(token, prefix, "special", False)
        flag(token, prefix, "normalized", True)
        if not content or content in contents:
            refuse(prefix + "content", content, "each added token needs a text of its own")
        contents.add(content)
        expected = vocabulary.get(content, following)
        following += content not in vocabulary
        if token["id"] != expected:
            refuse(prefix + "id", token["id"], f"the tokenizers library reads it as {expected}")
        stands_for = [SYMBOLS.get(symbol) for symbol in content]
        if content in vocabulary and None not in stands_for and bytes(stands_for) != content.encode():
            refuse(prefix + "content", content, "in model.vocab this text stands for other bytes")


def check(rules):
    """Raises InputError, with the key and what kzero reads there, for the rules of a tokenizer.json that kzero would refuse."""
    if not isinstance(rules, dict):
        raise InputError("is not a JSON object")
    allow_keys(
        rules,
        "",
        "version",
        "truncation",
        "padding",
        "added_tokens",
        "normalizer",
        "pre_tokenizer",
        "post_processor",
        "decoder",
        "model",
    )
    allow(rules.get("version"), "version", None, "1.0")
    allow(rules.get("truncation"), "truncation", None)
    allow(rules.get("padding"), "padding", None)
    allow(rules.get("normalizer"), "normalizer", None, {"type": "NFC"})
    check_pre_tokenizer(rules.get("pre_tokenizer"))
    decoder = rules.get("decoder")
    if not isinstance(decoder, dict) or decoder.get("type") != "ByteLevel":
        refuse("decoder", decoder, "kzero reads only a ByteLevel there")
    check_added(rules.get("added_tokens"), check_model(rules.get("model")))
