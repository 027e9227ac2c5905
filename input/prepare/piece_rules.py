"""The rules of a tokenizer.json whose BPE falls back to bytes, as src/tokenizer/sentence_piece.cpp reads them."""

import json
import re

from .rule_checks import allow, allow_keys, flag, is_same, refuse

MARK = "\u2581"  # is written for a space
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
PREPEND = {"type": "Prepend", "prepend": MARK}
AT_SPACES = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
SPELLED_BACK = [{"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]


def is_byte(piece):
    """Whether a spelling means a byte. The library reads more spellings than it writes."""
    return re.fullmatch(r"<0x(?:[0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>", piece) is not None


def check_bytes(vocabulary):
    for byte in range(256):
        if (piece := f"<0x{byte:02X}>") not in vocabulary:
            refuse("model.byte_fallback", True, f"model.vocab has no {json.dumps(piece)}")


def is_sequence(rules, key, *steps):
    return is_same(rules, {"type": "Sequence", key: list(steps)})


def writes_marks(rules):
    """Whether a normalizer writes marks. Refuses others than those of SentencePiece."""

    def is_one_of(*lists):
        return any(is_sequence(rules, "normalizers", *steps) for steps in lists)

    if rules is None or is_one_of([]):
        return False
    if not is_same(rules, REPLACE) and not is_one_of([REPLACE], [PREPEND, REPLACE], [REPLACE, PREPEND]):
        refuse(
            "normalizer",
            rules,
            f'where model.byte_fallback is true, kzero reads only null, Replace of " " by "{MARK}", and a Sequence of Prepend of '
            f'"{MARK}" and this Replace there',
        )
    return True


def check_metaspace(rules):
    prefix, scheme = "pre_tokenizer.", rules.get("prepend_scheme")
    allow_keys(rules, prefix, "type", "replacement", "prepend_scheme", "split", "add_prefix_space")
    allow(rules.get("replacement"), prefix + "replacement", MARK)
    allow(scheme, prefix + "prepend_scheme", None, "always", "first", "never")
    if not flag(rules, prefix, "add_prefix_space", True) and scheme != "never":
        refuse(prefix + "add_prefix_space", False, 'prepend_scheme is not "never"')
    flag(rules, prefix, "split", True)


def check_pre_tokenizer(rules, is_marked):
    if not is_marked and isinstance(rules, dict) and rules.get("type") == "Metaspace":
        check_metaspace(rules)
    elif not is_marked or not (rules is None or is_same(rules, AT_SPACES)):
        allowed = 'no spaces, kzero reads only Metaspace there'
        if is_marked:
            allowed = 'spaces, kzero reads only null and a Split at " " that is MergedWithPrevious there'
        refuse("pre_tokenizer", rules, f"where model.byte_fallback is true and the normalizer replaces {allowed}")


def check_decoder(rules):
    strips = [[], *([{"type": "Strip", "content": " ", "start": count, "stop": 0}] for count in (0, 1))]
    if not any(is_sequence(rules, "decoders", *SPELLED_BACK, *strip) for strip in strips):
        refuse(
            "decoder",
            rules,
            f'where model.byte_fallback is true, kzero reads only a Sequence of Replace of "{MARK}" by " ", ByteFallback, Fuse, and '
            'perhaps Strip of 0 or 1 " " at the start there',
        )


def check_marks(rules):
    """Checks the normalizer, the pre_tokenizer and the decoder of such a file."""
    check_pre_tokenizer(rules.get("pre_tokenizer"), writes_marks(rules.get("normalizer")))
    check_decoder(rules.get("decoder"))
