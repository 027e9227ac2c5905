"""The rules of a tokenizer.json that kzero reproduces, as src/tokenizer/definition.cpp reads them.

prepare.py checks them before it encodes. If kzero refuses a tokenizer, kzero generate cannot show its tokens as text, and kzero
evaluate cannot compute bits per byte. tests/prepare compares both implementations.
"""

import json

from . import pattern_rules, piece_rules
from .documents import InputError
from .rule_checks import allow, allow_keys, check_id, flag, is_same, refuse


def byte_symbols():
    """The characters that represent the 256 bytes in the vocabulary of byte-level BPE, and their bytes."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{chr(byte): byte for byte in printable}, **{chr(256 + i): byte for i, byte in enumerate(others)}}


SYMBOLS = byte_symbols()


def check_byte_level(rules, prefix):
    allow_keys(rules, prefix, "type", "add_prefix_space", "trim_offsets", "use_regex")
    flag(rules, prefix, "use_regex", True)
    flag(rules, prefix, "add_prefix_space", True)


def check_digits(rules, prefix):
    allow_keys(rules, prefix, "type", "individual_digits")
    flag(rules, prefix, "individual_digits", False)


def check_split(rules, prefix):
    allow_keys(rules, prefix, "type", "pattern", "behavior", "invert")
    allow(rules.get("behavior"), prefix + "behavior", "Removed" if flag(rules, prefix, "invert", False) else "Isolated")
    pattern = rules.get("pattern")
    regex = pattern.get("Regex") if isinstance(pattern, dict) and len(pattern) == 1 else None
    if not isinstance(regex, str):
        refuse(prefix + "pattern", pattern, 'kzero reads only {"Regex": text} there')
    try:
        pattern_rules.check(regex)
    except pattern_rules.UnknownPattern as problem:
        refuse(prefix + "pattern", pattern, f"kzero does not read {problem}; a pattern may have {pattern_rules.PARTS}")


def check_step(rules, key, is_last):
    known = {"ByteLevel": check_byte_level} if is_last else {"Split": check_split, "Digits": check_digits}
    kind = rules.get("type") if isinstance(rules, dict) else None
    if not isinstance(kind, str) or kind not in known:
        why = "kzero reads only a ByteLevel there" if is_last else "kzero reads only Split and Digits before a ByteLevel"
        refuse(key, rules, why)
    known[kind](rules, key + ".")


def check_pre_tokenizer(rules):
    key = "pre_tokenizer"
    if not isinstance(rules, dict) or rules.get("type") != "Sequence":
        check_step(rules, key, True)
        return
    allow_keys(rules, key + ".", "type", "pretokenizers")
    steps = rules.get("pretokenizers")
    if not isinstance(steps, list) or not steps:
        refuse(key + ".pretokenizers", steps, "a list that ends with a ByteLevel is needed there")
    for number, step in enumerate(steps):
        check_step(step, f"{key}.pretokenizers[{number}]", number + 1 == len(steps))


def template_ids(rules, prefix):
    """The ids that a TemplateProcessing adds."""
    allow_keys(rules, prefix, "type", "single", "pair", "special_tokens")
    single = rules.get("single")
    if not isinstance(single, list):
        refuse(prefix + "single", single, "a list is needed there")
    ids, texts = [], 0
    for number, piece in enumerate(single):
        special, text = (piece.get(key) if isinstance(piece, dict) else None for key in ("SpecialToken", "Sequence"))
        if isinstance(special, dict):
            ids += special_ids(rules, special.get("id"), prefix)
        elif isinstance(text, dict) and text.get("id") == "A" and not texts:
            texts += 1
        else:
            refuse(f"{prefix}single[{number}]", piece, "kzero reads only special tokens and, once, the text A there")
    if not texts:
        refuse(prefix + "single", single, "the text A is needed there")
    return ids


def special_ids(rules, name, prefix):
    if not isinstance(name, str):
        refuse(prefix + "single", name, "a text is needed there")
    tokens, key = rules.get("special_tokens"), f"{prefix}special_tokens.{name}"
    token = tokens.get(name) if isinstance(tokens, dict) else tokens
    ids = token.get("ids") if isinstance(token, dict) else None
    if not isinstance(ids, list):
        refuse(key, token, "an object with ids is needed there")
    for one in ids:
        check_id(one, key + ".ids")
    return ids


def classifier_ids(rules, prefix):
    """The ids that a RobertaProcessing or a BertProcessing adds."""
    allow_keys(rules, prefix, "type", "sep", "cls", "trim_offsets", "add_prefix_space")
    for key in ("cls", "sep"):
        pair = rules.get(key)
        if not isinstance(pair, list) or len(pair) != 2:
            refuse(prefix + key, pair, "a token's text and its id are needed there")
        check_id(pair[1], prefix + key)
    return [rules["cls"][1], rules["sep"][1]]


def byte_level_ids(rules, prefix):
    allow_keys(rules, prefix, "type", "add_prefix_space", "trim_offsets", "use_regex")
    return []


PROCESSORS = {
    "TemplateProcessing": template_ids,
    "RobertaProcessing": classifier_ids,
    "BertProcessing": classifier_ids,
    "ByteLevel": byte_level_ids,
}


def check_processor(rules, key):
    """Returns the ids that a post_processor adds."""
    kind = rules.get("type") if isinstance(rules, dict) else None
    if not isinstance(kind, str) or kind not in PROCESSORS:
        refuse(key, rules, f"kzero reads only {', '.join(PROCESSORS)} and a Sequence of these there")
    return PROCESSORS[kind](rules, key + ".")


def check_post_processor(rules, known):
    """`known`: all ids of the file."""
    key, ids = "post_processor", []
    if rules is None:
        return
    if not isinstance(rules, dict) or rules.get("type") != "Sequence":
        ids = check_processor(rules, key)
    else:
        allow_keys(rules, key + ".", "type", "processors")
        steps = rules.get("processors")
        if not isinstance(steps, list):
            refuse(key + ".processors", steps, "a list is needed there")
        for number, step in enumerate(steps):
            if (added := check_processor(step, f"{key}.processors[{number}]")) and ids:
                refuse(f"{key}.processors[{number}]", step, "the library cannot add tokens in two steps")
            ids = ids or added
    if strangers := set(ids) - known:
        refuse(key, rules, f"it adds token {min(strangers)}, which the file does not have")


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
    allow(model.get("byte_fallback"), "model.byte_fallback", None, False, True)
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        allow(model.get(key), "model." + key, None, "")
    flag(model, "model.", "ignore_merges", False)
    flag(model, "model.", "fuse_unk", False)
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
    falls_back = model.get("byte_fallback") is True
    check_unknown(model.get("unk_token"), vocabulary, falls_back)
    if falls_back:
        piece_rules.check_bytes(vocabulary)
    check_merges(model.get("merges"), vocabulary, falls_back)
    return vocabulary


def check_unknown(text, vocabulary, falls_back):
    """The token for bytes that the vocabulary lacks. It need not exist if all bytes do."""
    if text is not None and not isinstance(text, str):
        refuse("model.unk_token", text, "a text is needed there")
    if falls_back:
        return
    missing = [byte for symbol, byte in SYMBOLS.items() if symbol not in vocabulary]
    if missing and text is not None and text not in vocabulary:
        refuse("model.unk_token", text, f"model.vocab has neither this token nor one for byte {min(missing)}")


def check_merges(merges, vocabulary, falls_back):
    if not isinstance(merges, list):
        refuse("model.merges", merges, "a list is needed there")
    for number, merge in enumerate(merges):
        key = f"model.merges[{number}]"
        if isinstance(merge, str) and merge.startswith("#version"):
            continue
        sides = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(sides, list) or len(sides) != 2 or not all(isinstance(side, str) for side in sides):
            refuse(key, merge, "a merge is two texts, in a list or with one space between them")
        if falls_back and (byte := next(filter(piece_rules.is_byte, sides), None)):
            refuse(key, merge, f"kzero merges no {json.dumps(byte)}, which is a byte")
        for text in (*sides, "".join(sides)):
            if text not in vocabulary:
                refuse(key, merge, f"model.vocab has no {json.dumps(text)}")


def check_added(tokens, vocabulary, falls_back):
    """Returns their ids."""
    if tokens is None:
        return set()
    if not isinstance(tokens, list):
        refuse("added_tokens", tokens, "a list is needed there")
    contents, following = set(), len(vocabulary)
    for number, token in enumerate(tokens):
        prefix = f"added_tokens[{number}]."
        if not isinstance(token, dict):
            refuse(prefix[:-1], token, "an object is needed")
        allow_keys(token, prefix, "id", "content", "single_word", "lstrip", "rstrip", "normalized", "special")
        for key in ("single_word", "lstrip", "rstrip"):
            allow(token.get(key), prefix + key, False, True)
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
        if not falls_back and content in vocabulary and None not in stands_for and bytes(stands_for) != content.encode():
            refuse(prefix + "content", content, "in model.vocab this text stands for other bytes")
    return {token["id"] for token in tokens}


def check_normalizer(rules):
    if not any(is_same(rules, {"type": "Sequence", "normalizers": steps}) for steps in ([], [{"type": "NFC"}])):
        allow(rules, "normalizer", None, {"type": "NFC"})


def check_decoder(rules):
    if not isinstance(rules, dict) or rules.get("type") != "ByteLevel":
        refuse("decoder", rules, "kzero reads only a ByteLevel there")


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
    model = rules.get("model")
    falls_back = isinstance(model, dict) and model.get("byte_fallback") is True
    if falls_back:
        piece_rules.check_marks(rules)
    else:
        check_normalizer(rules.get("normalizer"))
        check_pre_tokenizer(rules.get("pre_tokenizer"))
        check_decoder(rules.get("decoder"))
    vocabulary = check_model(model)
    added = check_added(rules.get("added_tokens"), vocabulary, falls_back)
    check_post_processor(rules.get("post_processor"), {*vocabulary.values(), *added})
