"""CITATION.cff: what the format's version 1.2.0 asks for, and the version of this tree."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEYS = {
    "cff-version",
    "message",
    "title",
    "abstract",
    "type",
    "version",
    "authors",
    "keywords",
    "references",
}  # top level, in use


class Citation(unittest.TestCase):
    TEXT = (ROOT / "CITATION.cff").read_text()

    def value(self, key):
        return re.search(rf'(?m)^ *(?:- )?{key}: *"?([^"\n]*)"?$', self.TEXT).group(1)

    def test_its_keys_are_those_of_the_format(self):
        self.assertEqual(set(re.findall(r"(?m)^([a-z-]+):", self.TEXT)), KEYS)
        self.assertEqual((self.value("cff-version"), self.value("type")), ("1.2.0", "software"))
        self.assertNotIn("\t", self.TEXT)

    def test_its_version_is_that_of_the_project(self):
        project = re.search(r"project\(kzero VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        self.assertEqual(self.value("version"), project)

    def test_it_names_the_paper(self):
        self.assertIn("arXiv:1910.02054", self.TEXT.split("references:")[1])


if __name__ == "__main__":
    unittest.main()
