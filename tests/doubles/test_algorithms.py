"""kzero check --algorithms and run.algorithms, by the program with the stand-in for cuBLASLt (cublaslt_program.cpp)."""

import tomllib
import unittest

from launch import LaunchTest, records, steps_of


class Algorithms(LaunchTest):
    def kept(self, result, code, *texts):
        """Of a run that kept to the rules of CUDA's libraries."""
        self.expect(result, code, *texts)
        for text in ("against the rules", "Failure"):
            self.assertNotIn(text, result.stdout + result.stderr)
        return result.stdout

    def measure(self, file, *overrides, ranks=None):
        return self.run_kzero("check", "deck.toml", *overrides, "--algorithms", file, ranks=ranks)

    def arithmetic(self):
        (start,) = records(self.folder / "metrics.jsonl", "start")
        (library,) = [text for text in start["bits_depend_on"] if text.startswith("cuBLASLt")]
        return library

    def test_a_table_is_measured_and_used(self):
        shown = self.kept(self.measure("table.toml", "train.precision=bf16"), 0)
        table = tomllib.loads((self.folder / "table.toml").read_text())
        products = table["product"]
        self.assertGreater(len(products), 10)
        calls = sum(product["calls"] for product in products)
        expected = f"{len(products)} different products take {calls:.2f} ms of a step, and {0.75 * calls:.2f} ms with the "
        self.assertIn(f"table.toml: {expected}{len(products)} faster algorithms", shown)
        self.assertEqual({product["id"] for product in products}, {66})
        self.assertFalse((self.folder / "saved").exists())
        self.assertFalse((self.folder / "metrics.jsonl").exists())
        self.kept(self.measure("table.toml"), 4, "table.toml exists; --algorithms writes a new file")

        use = ("train.precision=bf16", "run.algorithms=table.toml", "checkpoint.folder=")
        shown = self.kept(self.train(*use), 0)
        self.assertIn(f"algorithms  {len(products)} of {len(products)} different products take theirs from table.toml", shown)
        steps, library = steps_of(self.folder / "metrics.jsonl"), self.arithmetic()
        self.assertRegex(library, r"^cuBLASLt 0 with algorithms [0-9a-f]{16}$")
        # The stand-in rounds alike by any algorithm.
        self.kept(self.train("train.precision=bf16", "checkpoint.folder=", "run.metrics=plain.jsonl"), 0)
        self.assertEqual(steps_of(self.folder / "plain.jsonl"), steps)
        (start,) = records(self.folder / "plain.jsonl", "start")
        self.assertIn("cuBLASLt 0", start["bits_depend_on"])

    def test_ranks_take_the_table_of_the_first(self):
        self.kept(self.measure("table.toml", "zero.stage=3", ranks=2), 0)
        stage = ("zero.stage=3", "run.algorithms=table.toml", "checkpoint.folder=")
        shown = self.kept(self.train(*stage, ranks=2), 0)
        self.assertRegex(shown, r"algorithms  (\d+) of \1 different products take theirs from table.toml")
        # Another batch has other products.
        shown = self.kept(self.train(*stage, "train.micro_batch=2", "run.metrics=", ranks=2), 0)
        self.assertRegex(shown, r"algorithms  0 of [1-9]\d* different products")

    def test_a_table_of_other_devices_is_refused(self):
        self.kept(self.measure("table.toml"), 0)
        text = (self.folder / "table.toml").read_text()
        (self.folder / "table.toml").write_text(text.replace('device = "', 'device = "not '))
        result = self.train("run.algorithms=table.toml", ranks=2)
        self.kept(
            result, 2, "run.algorithms: was measured on not device of kind 3 with cuBLASLt 0, but this is device of kind 3"
        )


if __name__ == "__main__":
    unittest.main()
