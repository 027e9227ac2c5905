"""Proves that check_words.py passes a good tree and names each kind of breach."""

import tempfile
import unittest
from pathlib import Path

from check_words import check_words

WORDS = """# pattern | replacement | files
\\bpieces?\\b | shard or chunk | src/checkpoint/format*.cpp
\\bTicket\\b | Request
\\blets? go|letting go\\b | release
"""
GOOD = {
    "src/checkpoint/format2.cpp": '// "/pieces" is a name of format 2.\n',
    "src/zero/store.hpp": "/// Releases a unit; a masterpiece, and a ticket to somewhere.\n",
    "tests/data/corpus.txt": "a piece of text that was recorded\n",
    "README.md": "Shards.\n",
}


class CheckWords(unittest.TestCase):
    def breaches(self, changes=None, words=WORDS):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**GOOD, **(changes or {})}.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            list_of_words = Path(folder) / "words.txt"
            list_of_words.write_text(words)
            return check_words(Path(folder), list_of_words)

    def expect(self, expected, changes=None, words=WORDS):
        found = self.breaches(changes, words)
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def test_a_good_tree_passes(self):
        self.assertEqual(self.breaches(), [])

    def test_an_empty_tree_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            words = Path(folder) / "words.txt"
            words.write_text("\\bticket\\b | Request\n")
            self.assertIn("no files", check_words(Path(folder), words)[0])

    def test_a_retired_word_in_any_folder(self):
        for name in ("src/zero/more.cpp", "tests/unit/more.py", "docs/more.md", "input/more.toml", "README.md"):
            self.expect(f'{name}:2: "Piece" is retired; write shard or chunk', {name: "\nPiece by slab\n"})

    def test_a_pattern_with_a_capital_heeds_case(self):
        self.expect('"Ticket" is retired; write Request', {"src/comm/more.hpp": "using Ticket = int;  // ticket\n"})

    def test_a_pattern_of_alternatives(self):
        for text in ("lets go", "letting go"):
            self.expect(f'"{text}" is retired; write release', {"docs/more.md": f"A unit that it {text} of.\n"})

    def test_another_file_than_the_one_allowed(self):
        self.expect("src/checkpoint/other.cpp:1", {"src/checkpoint/other.cpp": "// pieces\n"})

    def test_an_allowance_that_nothing_needs(self):
        self.expect("src/checkpoint/format*.cpp no longer needs", {"src/checkpoint/format2.cpp": ""})

    def test_a_malformed_list(self):
        self.expect("words.txt:5: not", words=WORDS + "queue, stream\n")


if __name__ == "__main__":
    unittest.main()
