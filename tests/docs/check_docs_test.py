"""Proves that check_docs.py passes good documentation and names each kind of breach."""

import tempfile
import unittest
from pathlib import Path

from check_docs import check_columns, check_docs

GOOD = """See [it](docs/deck.md#model), [the web](https://example.org/none), `src/app/main.cpp`, `app/main`.

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

    def test_prose_is_wrapped(self):
        words = "word " * 19 + "end"  # 98 columns
        long = words + " more"
        code = f"`{words} {words}`"
        for text in (
            words + " a",
            f"# {long}",
            f"| {long} |",
            f"<!-- {long} -->",
            f"[it]: https://example.org/{long}",
            f"```\n{long}\n    {long}\n\n{long}\n```",
            f"Code:\n\n    {long}\n\n    {long}",
            f"# Code\n    {long}",
            f"- {code}",
            f"10. {code}.",
            f"See\n[it](https://example.org/{'x' * 100}).",
        ):
            with self.subTest(text):
                self.assertEqual(self.breaches(f"{text}\n"), [])
        for text, line, columns in (
            (long, 1, 103),
            (f"- {words} a", 1, 102),
            (f"10. Text\n    {long}", 2, 107),
            (f"```\n{long}\n```\n{long}", 4, 103),
            (f"    {long}\n{long}", 2, 103),
            (f"See {code}", 1, 203),
        ):
            with self.subTest(text):
                expected = f"README.md:{line}: {columns} columns of prose; wrap it at 100"
                self.assertEqual(self.breaches(f"{text}\n"), [expected])

    def test_prose_of_every_folder_is_wrapped(self):
        long = "word " * 21
        with tempfile.TemporaryDirectory() as folder:
            for name in ("SECURITY.md", "docs/a.md", "tests/cluster/README.md"):
                (Path(folder) / name).parent.mkdir(exist_ok=True, parents=True)
                (Path(folder) / name).write_text(f"{long}\n")
            self.assertEqual(len(list(check_columns(Path(folder)))), 3)

    def test_a_program_without_keys_fails(self):
        self.assertIn("kzero defaults shows no keys", self.breaches(GOOD, defaults=""))


if __name__ == "__main__":
    unittest.main()
