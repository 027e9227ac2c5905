"""Proves that check_docs.py passes good documentation and names each kind of breach."""

import tempfile
import unittest
from pathlib import Path

from check_docs import check_docs

GOOD = """See [the deck](docs/deck.md#model), [the web](https://example.org/none) and `src/app/main.cpp`, by `app/main`.

    mpiexec -n 2 build/release/kzero train input/a.toml train.steps=3   # or input/DECK.toml
    kzero inspect --verify FOLDER

```
cmake --preset release -DKZERO_NATIVE=OFF
```
"""
HELP = {
    "": "Subcommands:\n  train    train a model\n  inspect   show\n",
    "train": "--help",
    "inspect": "  -h,--help\n  --verify  read all",
}


class CheckDocs(unittest.TestCase):
    def breaches(self, text, defaults="[train]\nsteps = 1\n"):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, content in {
                "README.md": text,
                "docs/deck.md": "# Deck\n",
                "src/app/main.cpp": "",
                "input/a.toml": "",
                "CMakeLists.txt": 'option(KZERO_NATIVE "" ON)\n',
                "CMakePresets.json": '{"buildPresets": [{"name": "release"}]}',
            }.items():
                (root / name).parent.mkdir(exist_ok=True, parents=True)
                (root / name).write_text(content)
            return check_docs(root, HELP.__getitem__, defaults)

    def test_good_documentation_passes(self):
        self.assertEqual(self.breaches(GOOD), [])

    def test_each_breach_is_named_with_its_line(self):
        for old, new, expected in (
            ("docs/deck.md", "docs/dock.md", "README.md:1: the link to docs/dock.md leads nowhere"),
            ("main.cpp", "mine.cpp", "README.md:1: there is no src/app/mine.cpp"),
            ("app/main`", "app/mine`", "README.md:1: there is no app/mine"),
            ("input/a.toml", "input/b.toml", "README.md:3: there is no input/b.toml"),
            ("kzero train", "kzero trane", "README.md:3: kzero has no subcommand trane"),
            ("steps=3", "stops=3", "README.md:3: there is no key train.stops"),
            ("--verify", "--check", "README.md:4: kzero inspect has no option --check"),
            ("preset release", "preset fast", "README.md:6: there is no preset fast"),
            ("KZERO_NATIVE", "KZERO_FAST", "README.md:6: CMakeLists.txt has no option KZERO_FAST"),
        ):
            with self.subTest(new):
                self.assertEqual(self.breaches(GOOD.replace(old, new)), [expected])

    def test_keys_of_lists_are_known(self):
        defaults = "[train]\nsteps = 1\n# [[data.blend]]\n# # Its share.\n# weight = 1.0\n"
        good = GOOD + "\n`data.blend=` or `data.blend[12].weight=2`\n"
        self.assertEqual(self.breaches(good, defaults), [])
        self.assertIn("there is no key data.blend[12].wait", "".join(self.breaches(good.replace("weight", "wait"), defaults)))
        self.assertIn("there is no key data.blend", "".join(self.breaches(good)))

    def test_a_program_without_keys_fails(self):
        self.assertIn("kzero defaults shows no keys", self.breaches(GOOD, defaults=""))


if __name__ == "__main__":
    unittest.main()
