"""Compares the program's tokenizer with the tokenizers library on random text of awkward characters.

    python3 compare_wheel.py ENCODE_LINES TOKENIZER.json COUNT [SEED | FILE...]

With files, their text is compared too. Exits with 1 at a difference, with 77 if this Python lacks the library.
"""

import itertools
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

SPACES = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u180e"
    + "".join(map(chr, range(0x2000, 0x2010)))
    + "\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
)
COMBINING = "".join(map(chr, [*range(0x300, 0x370), 0x3099, 0x309A, 0x1AB0, 0x1ABF, 0x20D0, 0x898, 0x7FD, 0xD3B, 0x1DF6]))
CONTRACTIONS = [
    "'s",
    "'S",
    "'\u017f",
    "'t",
    "'re",
    "'RE",
    "'rE",
    "'ve",
    "'m",
    "'M",
    "'ll",
    "'lL",
    "'d",
    "'D",
    "''",
    "'",
    "\u2019s",
    "'r",
    "'l",
    "'v",
]
PARTS = [
    lambda r: r.choice(SPACES) * r.choice([1, 1, 2, 5]),
    lambda r: " " * r.randint(1, 4),
    lambda r: r.choice(["\n", "\r", "\r\n", "\n\n", " \n", "\n ", "\t\n\t"]),
    lambda r: r.choice(CONTRACTIONS),
    lambda r: r.choice(COMBINING) * r.choice([1, 1, 2]),
    lambda r: r.choice("aeoucnAEOUCN\u1100\u1112\u0915\u09c7\u0b47") + r.choice(COMBINING + "\u1161\u11a8\u093c\u09be\u0b3e"),
    lambda r: "".join(r.choices("0123456789", k=r.randint(1, 8))),
    lambda r: r.choice("\u0660\u0967\u00b2\u00bd\u2160\u3007\u2460\U00010107\U0001d7d8\u5341"),
    lambda r: "".join(r.choices("abcdefghijklmnopqrstuvwxyz", k=r.randint(1, 12))),
    lambda r: r.choice(
        ["the", " and", " of", "kzero", " rank", "tokens", "memory", " is", "ing", " checkpoint", " zebra", " zebras"]
    ),
    lambda r: chr(r.randint(0x4E00, 0x9FFF)) * r.choice([1, 1, 3]),
    lambda r: chr(r.randint(0x3040, 0x30FF)),
    lambda r: chr(r.randint(0xAC00, 0xD7A3)),
    lambda r: chr(r.randint(0x400, 0x5FF)),
    lambda r: r.choice(
        [
            "\U0001f468\u200d\U0001f469\u200d\U0001f467",
            "\U0001f44d\U0001f3fd",
            "\U0001f1e9\U0001f1ea",
            "\u2764\ufe0f",
            "\U0001fae8",
        ]
    ),
    lambda r: chr(r.randint(0, 0x1F)),
    lambda r: chr(r.choice([0x7F, 0x80, 0x9F, 0xAD, 0x200D, 0x2066, 0xFFFD, 0xFFFE, 0xFFFF, 0x10FFFF, 0xE000])),
    lambda r: "".join(r.choices("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", k=r.randint(1, 4))),
    lambda r: r.choice(
        [
            "<|endoftext|>",
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|end_of_text|>>",
            "<|end_of",
            "<tool_call>",
            "\u00e9t\u00e9",
            "e\u0301te\u0301",
        ]
    ),
    lambda r: character(r),
    lambda r: r.choice("\u212b\u2126\u1e9b\u0344\u0958\ufb1d\u2adc\U0001d15e\U0002f800\ufb01\u0130\u0131\u017f\u212a\u00df"),
    lambda r: chr(
        r.choice([0x1C89, 0xA7DA, 0x10D40, 0x11392, 0x13460, 0x16D70, 0x1E5F1, 0x2EBF0, 0x31350, 0x1E4D0, 0x1DF25, 0x323B0])
    ),
    lambda r: r.choice("ab") * r.choice([7, 40, 300]),
]


def character(r):
    """Any character but a surrogate, which UTF-8 does not have."""
    code = r.choice([r.randint(0, 0xFF), r.randint(0, 0xFFFF), r.randint(0, 0x10FFFF)])
    return character(r) if 0xD800 <= code < 0xE000 else chr(code)


def random_text(r):
    return "".join(r.choice(PARTS)(r) for _ in range(r.choice([0, 1, 2, 3, 5, 8, 20])))


def printed(program, tokenizer, mode, texts):
    """The program's output: a list of numbers for each text."""
    with tempfile.TemporaryFile("w+") as lines:
        lines.writelines(json.dumps(text) + "\n" for text in texts)
        lines.seek(0)
        done = subprocess.run([program, tokenizer, mode], stdin=lines, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{program} failed: {done.stderr}")
    found = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
    if len(found) != len(texts):
        raise SystemExit(f"{len(texts)} texts, but {len(found)} lines")
    return found


def differences(what, texts, wanted, found):
    """How many differ; prints the first few."""
    different = [case for case in zip(texts, wanted, found) if case[1] != case[2]]
    for text, want, got in different[:5]:
        print(f"{what} of {ascii(text)}: the library says {want}, the program {got}")
    return len(different)


def word_ends(tokenizer, text):
    """The end of each word in bytes: a symbol of byte-level BPE is one."""
    return list(itertools.accumulate(len(word) for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)))


def compare(program, path, texts):
    """The number of texts whose tokens or words differ."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    mode = "keeps-text" if tokenizer.normalizer is None else "changes-text"
    wanted = []
    for begin in range(0, len(texts), 10000):
        wanted += [one.ids for one in tokenizer.encode_batch(texts[begin : begin + 10000], add_special_tokens=False)]
    return differences("tokens", texts, wanted, printed(program, path, mode, texts)) + differences(
        "words", texts, [word_ends(tokenizer, text) for text in texts], printed(program, path, "words", texts)
    )


def main(program, path, count, *rest):
    try:
        import tokenizers
    except ImportError:
        print(f"{sys.executable} has no tokenizers: bash cmake/debian.sh installs it in .deps/venv")
        return 77
    seed = int(rest[0]) if rest and rest[0].isdigit() else 1
    r = random.Random(seed)
    texts = [random_text(r) for _ in range(int(count))]
    for file in rest[0 if not rest or not rest[0].isdigit() else 1 :]:
        text = Path(file).read_bytes().decode(errors="replace")
        texts += [text, *text.splitlines()]
    different = compare(program, path, texts)
    print(
        f"{path}: {different} of {len(texts)} texts have other tokens or words than tokenizers {tokenizers.__version__} gives"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
