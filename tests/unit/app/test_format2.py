"""A checkpoint of format 2, which programs before format 3 wrote, is still good for everything."""

import json
import shutil
import unittest
from pathlib import Path

import h5py
import numpy as np
from launch import FOR_DEVICES, LaunchTest, arrays_of

# Written by two ranks in stage 2 and fp32, at step 6 of 10. expected.json has its parameter hash, and the output of the
# program that wrote it for the following steps.
FIXTURE = Path(__file__).parents[2] / "data/checkpoint_format2"
CHECKPOINT = "saved/step_00000006"


class Format2(LaunchTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(FIXTURE / "step_00000006", self.folder / CHECKPOINT)
        for name in ("deck.toml", "data.txt"):
            shutil.copy(FIXTURE / name, self.folder)
        self.expected = json.loads((FIXTURE / "expected.json").read_text())

    def test_it_is_described_and_verified(self):
        text = self.expect(self.run_kzero("inspect", CHECKPOINT), 0).stdout
        for part in (
            "format      2,",
            "6 steps",
            self.expected["parameter_hash"],
            "3000 in 16 tensors, each with master, first_moment, second_moment",
        ):
            self.assertIn(part, text)
        self.assertIn("every checksum agrees", self.expect(self.run_kzero("inspect", CHECKPOINT, "--verify"), 0).stdout)

    def test_damage_is_named(self):
        path = self.folder / CHECKPOINT / "shard_00001.h5"
        with h5py.File(path) as shard:
            dataset = next(iter(shard.values()))["first_moment"]
            name, offset = dataset.name.strip("/"), dataset.id.get_offset()
        content = bytearray(path.read_bytes())
        content[offset + 1] ^= 4
        path.write_bytes(content)
        found = self.expect(self.run_kzero("inspect", CHECKPOINT, "--verify"), 4)
        self.assertIn(f"dataset {name} is damaged", found.stdout + found.stderr)

    def test_training_goes_on_as_before(self):
        for ranks in (2, 1):
            with self.subTest(ranks=ranks):
                (self.folder / "metrics.jsonl").unlink(missing_ok=True)
                shutil.rmtree(self.folder / "saved/step_00000010", ignore_errors=True)
                # The loaded state is compared with the manifest's hash, so its bits equal those that were saved.
                result = self.expect(self.train(ranks=ranks), 0)
                self.assertIn("resumed from saved/step_00000006", result.stdout)
                steps = self.metrics("step")
                self.assertEqual([s["step"] for s in steps], [6, 7, 8, 9])
                # Only rounding may differ: by the order of sums over ranks and by the machine's instructions.
                tolerance = 1e-2 if FOR_DEVICES else 1e-5
                for key, expected in (("loss", "losses"), ("grad_norm", "grad_norms")):
                    np.testing.assert_allclose([s[key] for s in steps], self.expected[expected], rtol=tolerance)
                self.assertIn("format      3,", self.expect(self.run_kzero("inspect", "saved/step_00000010"), 0).stdout)

    def test_its_weights_are_exported(self):
        self.expect(self.run_kzero("convert", CHECKPOINT, "weights.safetensors"), 0)
        content = (self.folder / "weights.safetensors").read_bytes()
        length = int.from_bytes(content[:8], "little")
        tensors = json.loads(content[8 : 8 + length])
        saved = arrays_of(self.folder / CHECKPOINT)
        self.assertEqual(sum(name.endswith("/master") for name in saved), 16)
        for name, values in saved.items():
            if not name.endswith("/master"):
                continue
            begin, end = (8 + length + n for n in tensors[name.removesuffix("/master")]["data_offsets"])
            self.assertEqual(content[begin:end], values.tobytes(), name)


if __name__ == "__main__":
    unittest.main()
