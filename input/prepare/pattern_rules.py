"""The regular expressions of a Split that kzero reads, as src/tokenizer/pattern_reader.cpp reads them."""

import re

CATEGORIES = {
    *("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Me", "Mc", "Nd", "Nl", "No", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cs", "Cn"),
    *("Pd", "Ps", "Pe", "Pc", "Po", "Pi", "Pf", "Sm", "Sc", "Sk", "So", "L", "M", "N", "P", "S", "Z", "C"),
}
PARTS = r"| (?:) (?i:) (?!) [] [^] ? * + {1,3}, \s \d \r \n \t and general categories such as \p{Lu}"
SIGNS = ".^$*+?{}()[]|"
FOLDED_TO_TWO = ("ss", "st", "ff", "fi", "fl")  # some characters fold to two letters, such as the German sharp s
MAX_DEPTH, MAX_SHOWN, LONGEST = 20, 20, 10_000


class UnknownPattern(Exception):
    """A pattern has something that kzero does not read."""


def check(pattern):
    """Raises UnknownPattern, which tells what kzero does not read."""
    if len(pattern) > LONGEST:
        raise UnknownPattern(f"more than {LONGEST} characters")
    reader = PatternReader(pattern)
    is_empty = reader.read_alternatives(0)
    if not reader.is_end():
        reader.refuse(1)
    if is_empty:
        raise UnknownPattern("a match of no character")


class PatternReader:
    """Reads one pattern from its beginning to its end. Functions return whether what they read may match no character."""

    def __init__(self, pattern):
        self.text, self.at, self.ignores_case = pattern, 0, False

    def is_end(self):
        return self.at == len(self.text)

    def is_next(self, part):
        return self.text.startswith(part, self.at)

    def skip(self, part):
        found = self.is_next(part)
        self.at += len(part) * found
        return found

    def refuse(self, count):
        """Names up to `count` characters from here on."""
        part = self.text[self.at : self.at + min(count, MAX_SHOWN)]
        shown = "".join(one if " " <= one <= "~" else f"U+{ord(one):04X}" for one in part)
        raise UnknownPattern(f"{shown}, its character {self.at + 1}" if part else "its end")

    def refuse_from(self, begin):
        count, self.at = max(self.at - begin, 1), begin
        self.refuse(count)

    def read_alternatives(self, depth):
        if depth > MAX_DEPTH:
            self.refuse(1)
        is_empty = self.read_sequence(depth)
        while self.skip("|"):
            is_empty |= self.read_sequence(depth)
        return is_empty

    def read_sequence(self, depth):
        is_empty = True
        while not self.is_end() and self.text[self.at] not in "|)":
            kind, may_be_empty = self.read_part(depth)
            is_empty &= self.read_count(kind) or may_be_empty
        return is_empty

    def read_part(self, depth):
        if self.is_next("("):
            return self.read_group(depth)
        begin = self.at
        if self.ignores_case and self.text[begin : begin + 2].lower() in FOLDED_TO_TWO:
            self.refuse(2)
        is_plain = self.read_set() if self.is_next("[") else self.read_one(False) is not None
        if self.ignores_case and not (is_plain and self.text[begin : self.at].isascii()):
            self.refuse_from(begin)
        return "characters", False

    def read_group(self, depth):
        begin, kind = self.at, "absent" if self.is_next("(?!") else "group"
        before, self.ignores_case = self.ignores_case, self.ignores_case or self.is_next("(?i:")
        if not (self.skip("(?!") or self.skip("(?:") or self.skip("(?i:")):
            self.refuse(3)
        is_empty = self.read_alternatives(depth + 1)
        if not self.skip(")"):
            self.refuse(1)
        if is_empty:
            self.refuse_from(begin)
        self.ignores_case = before
        return kind, kind == "absent"

    def read_count(self, kind):
        """? * + {2} {1,3} {1,} and ?+ *+ ++ : Oniguruma reads further signs as another repetition."""
        begin = self.at
        if self.is_end() or self.text[begin] not in "?*+{":
            return False
        sign, least = self.text[begin], 0
        self.at += 1
        if sign == "{":
            least = self.read_limits()
        elif sign == "+":
            least = 1
        if kind == "absent" or (kind == "group" and sign != "?"):
            self.refuse_from(begin)
        if kind == "characters" and sign != "{":
            self.skip("+")
        if not self.is_end() and self.text[self.at] in "?*+{":
            self.at += 1
            self.refuse_from(begin)
        return least == 0

    def read_limits(self):
        begin = self.at - 1
        least = most = self.read_number()
        if self.skip(","):
            most = None if self.is_next("}") else self.read_number()
        if not self.skip("}") or (most is not None and (most < least or most == 0)):
            self.refuse_from(begin)
        return least

    def read_number(self):
        digits = re.compile(r"[0-9]{0,4}").match(self.text, self.at)[0]
        if not digits:
            self.refuse_from(self.at - 1)
        self.at += len(digits)
        return int(digits)

    def read_one(self, is_in_set):
        """The character, or None for a set that has a name."""
        one = self.text[self.at : self.at + 1]
        if one == "\\":
            return self.read_escaped()
        if (one == "[" or self.is_next("&&")) if is_in_set else one in SIGNS:
            self.refuse(2)
        self.at += 1
        return one

    def read_escaped(self):
        if self.at + 1 == len(self.text):
            self.refuse(1)
        one = self.text[self.at + 1]
        if self.is_next("\\p{") or self.is_next("\\P{"):
            return self.read_category()
        if one not in "sSdD" and one not in "rnt" and not ("!" <= one <= "~" and not one.isalnum()):
            self.refuse(2)
        self.at += 2
        return None if one in "sSdD" else {"r": "\r", "n": "\n", "t": "\t"}.get(one, one)

    def read_category(self):
        name = self.text[self.at + 3 :].partition("}")[0]
        if name not in CATEGORIES or "}" not in self.text[self.at :]:
            self.refuse(min(len(name), 20) + 4)
        self.at += len(name) + 4

    def read_set(self):
        """Returns whether the set has only characters, and is not all but some."""
        self.at += 1
        is_plain = not self.skip("^")
        begin = self.at
        while self.at == begin or not self.skip("]"):
            is_plain &= self.read_range(self.at == begin)
        return is_plain

    def read_range(self, is_first):
        """A dash is itself only at the beginning and at the end of a set."""
        begin, is_dash = self.at, self.is_next("-")
        if self.is_end() or self.is_next("]") or (is_dash and not is_first and not self.is_next("-]")):
            self.refuse(2)
        one = self.read_one(True)
        if self.is_next("-") and not self.is_next("-]"):
            self.at += 1
            if self.is_end() or is_dash or one is None:
                self.refuse_from(begin)
            last = self.read_one(True)
            if last is None or last < one:
                self.refuse_from(begin)
        return one is not None
