"""Checkpoints whose checksums are right and whose numbers somebody has changed: every command refuses them before it uses a number.
Arguments: names of test classes."""

import ctypes
import ctypes.util
import shutil
import struct
import time
import unittest

import h5py
import numpy as np
from launch import LaunchTest

USER_BLOCK = 512  # bytes before the HDF5 data
ADAPTERS = ("model.initial=hf", "lora.rank=2", 'lora.targets=["c_attn", "c_fc"]', "run.metrics=")


def xxh3_64(data):
    function = ctypes.CDLL(ctypes.util.find_library("xxhash")).XXH3_64bits
    function.argtypes, function.restype = (ctypes.c_char_p, ctypes.c_size_t), ctypes.c_uint64
    return function(data, len(data))


def sign(manifest):
    """Renews the checksum."""
    data = manifest.read_bytes()
    digest = xxh3_64(data[USER_BLOCK:])
    header = f"kzero checkpoint manifest\nformat 3\nbytes {len(data)}\nxxh3_64 {digest:016x}\n"
    manifest.write_bytes(header.encode().ljust(USER_BLOCK, b"\0") + data[USER_BLOCK:])


def set_attribute(group, name, value):
    return lambda file: file[group].attrs.modify(name, np.array(value, file[group].attrs[name].dtype))


def set_value(dataset, index, value):
    def change(file):
        file[dataset][index] = value

    return change


def swap(dataset, one, other):
    def change(file):
        values = file[dataset][:]
        values[[one, other]] = values[[other, one]]
        file[dataset][:] = values

    return change


class Forged(LaunchTest):
    def forge(self, source, change):
        """A copy of a run's folder whose newest manifest is changed."""
        shutil.rmtree(self.folder / "forged", ignore_errors=True)
        shutil.copytree(self.folder / source, self.folder / "forged")
        manifest = max((self.folder / "forged").glob("step_*")) / "manifest.h5"
        with h5py.File(manifest, "r+") as file:
            change(file)
        sign(manifest)

    def refused(self, commands, text):
        for command in commands:
            with self.subTest(command=command, text=text):
                result = self.run_kzero(*command)
                shown = f"{result.stdout}\n{result.stderr}"
                self.assertEqual(result.returncode, 4, shown)
                self.assertIn("manifest.h5: ", result.stderr, shown)
                self.assertIn(text, result.stderr, shown)
                self.assertLess(len(result.stderr), 2000, shown)
        self.assertFalse((self.folder / "out").exists())


class Adapters(Forged):
    def setUp(self):
        super().setUp()
        self.expect(self.train("train.steps=2"), 0)
        self.expect(self.run_kzero("convert", "saved", "hf"), 0)
        self.expect(self.train("train.steps=2", *ADAPTERS, "checkpoint.folder=tuned"), 0)

    def test_adapters_are_those_of_the_model(self):
        commands = (
            ("convert", "forged", "out", "--merge"),
            ("convert", "forged", "out"),
            ("inspect", "forged"),
            ("inspect", "forged", "--verify"),
            ("generate", "forged", "--prompt", "a"),
            ("evaluate", "forged", "text", "--format", "bytes"),
            ("train", "deck.toml", *ADAPTERS, "checkpoint.folder=forged", "train.steps=3"),
        )
        for rank in (1, 3, 2**19):
            self.forge("tuned", set_attribute("/", "adapter_rank", rank))
            self.refused(commands, f"[2, 12], but the model with adapters of rank {rank} that it records has ")
        for change, text in (
            (set_attribute("/", "adapter_rank", 2**31), "its lora.rank is 2147483648, not "),
            (set_attribute("/", "adapter_rank", 0), "its adapters have the rank 0"),
            (set_attribute("/adapters", "alpha", np.nan), "its lora.alpha is nan"),
            (set_attribute("/adapters", "alpha", -1.0), "its lora.alpha is -1.0, not "),
            (swap("/adapters/targets", 0, 1), "its adapters are for the layers c_fc, c_attn"),
            (set_value("/adapters/targets", 0, "q_proj"), "its adapters are for the layers q_proj, c_fc"),
            (set_value("/adapters/targets", 0, "c_proj"), "its parameter 0 is h.0.attn.c_attn.lora_A.weight [2, 12], but "),
            (swap("/parameters/name", 0, 1), "its parameter 0 is h.0.attn.c_attn.lora_B.weight [2, 12]"),
            (set_value("/parameters/name", 1, "x" * 5000), "its parameter 1 is xxx"),
            (set_value("/parameters/shape", 0, (12, 2)), "its parameter 0 is h.0.attn.c_attn.lora_A.weight [12, 2]"),
            (set_attribute("/model", "layers", 2), "its parameter 4 is nothing more"),
        ):
            self.forge("tuned", change)
            self.refused(commands, text)


class Models(Forged):
    def setUp(self):
        super().setUp()
        self.expect(self.train("train.steps=2", "optimizer.ema=0.5"), 0)

    def commands(self):
        return (
            ("convert", "forged", "out"),
            ("convert", "forged", "out", "--ema"),
            ("inspect", "forged"),
            ("inspect", "forged", "--verify"),
            ("generate", "forged", "--prompt", "a"),
            ("evaluate", "forged", "text", "--format", "bytes"),
            ("train", "deck.toml", "checkpoint.folder=forged", "run.metrics=", "train.steps=3", "optimizer.ema=0.5"),
        )

    def test_parameters_are_those_of_the_model(self):
        for change, text in (
            (set_attribute("/model", "layers", 2), "but the model that it records has h.1."),
            (set_attribute("/model", "layers", 10000), "but the model that it records has h.1."),
            (set_attribute("/model", "layers", 10001), "its model.layers is not "),
            (set_attribute("/model", "layers", -1), "its model.layers is not "),
            (set_attribute("/model", "hidden", 24), "[256, 12], but the model that it records has wte.weight [256, 24]"),
            (set_attribute("/model", "hidden", 13), "its model is impossible: model.hidden must be a multiple of model.heads"),
            (set_attribute("/model", "heads", 5), "its model is impossible: "),
            (set_attribute("/model", "heads", 0), "its model.heads is not "),
            (set_attribute("/model", "vocab", 2**31 - 1), "[256, 12], but the model that it records has "),
            (set_attribute("/model", "feed_forward", 49), "but the model that it records has "),
            (set_attribute("/model", "tied_embeddings", 0), "but the model that it records has "),
            (set_attribute("/", "data_ranks", 0), "its grid is impossible"),
            (set_attribute("/", "tensor_ranks", -4), "its grid is impossible"),
            (set_attribute("/", "stage", 7), "its grid is impossible"),
            (set_attribute("/", "optimizer_start", 99), "its optimizer's state began after 99 updates"),
            (swap("/parameters/name", 2, 3), "its parameter 2 is "),
            (set_value("/state_arrays/name", 1, "master"), "state arrays is impossible"),
            (set_value("/state_shards/parameter", 1, 0), "elements of wte.weight, which has"),
            (set_value("/state_shards/parameter", 1, 2**40), "do not fit together"),
            (set_value("/state_shards/offset", (0, 0), 2**40), "is outside of the "),
            (set_value("/state_shards/runs", (0, 1), 7), "elements of "),
            (set_value("/shards/file", 0, "../../text"), "which cannot be a file of its folder"),
        ):
            self.forge("saved", change)
            self.refused(self.commands(), text)

    def test_another_array_than_the_weights_is_not_used(self):
        """The names of arrays decide which one the weights are."""
        self.forge("saved", set_value("/state_arrays/name", 0, "first"))
        for command in self.commands():
            if command[0] in ("inspect", "train") or "--ema" in command:
                continue
            self.expect(self.run_kzero(*command), 4, "holds no state array master")
        self.assertIn("is of another optimizer", self.run_kzero(*self.commands()[-1]).stderr)


class Older(Forged):
    """Files of format 3 from before a key existed: such a model has the key's default, as the program then computed."""

    llama = ('model.family="llama"', "model.head_dim=4", "train.steps=2")

    def without(self, *names):
        def change(file):
            for name in names:
                del file["model"].attrs[name]

        return change

    def test_a_model_without_windows_factors_and_experts_is_read(self):
        self.expect(self.train(*self.llama), 0)
        windows = ("window", "full_attention_every", "window_rope_theta", "no_rope_every")
        factors = ("attention_scale", "embedding_scale", "residual_scale", "logit_divisor")
        experts = ("experts", "experts_per_token", "normalized_gates", "router_score", "router_bias")
        experts += ("shared_feed_forward", "shared_gate")
        self.forge("saved", self.without(*windows, *factors, *experts))
        for command in (("inspect", "forged"), ("convert", "forged", "out")):
            self.expect(self.run_kzero(*command), 0)
        self.forge("saved", self.without("layers"))
        self.expect(self.run_kzero("inspect", "forged"), 4, "has no readable attribute layers")


class Manifests(Forged):
    """Time and memory do not grow beyond the size of a manifest."""

    def setUp(self):
        super().setUp()
        self.expect(self.train("train.steps=2"), 0)

    def test_groups_within_groups_are_refused_at_once(self):
        def nest(file):
            group = file
            for _ in range(2000):
                group = group.create_group("g")

        def cycle(file):
            group = file.create_group("g")
            group["g"] = group

        for change in (nest, cycle):
            self.forge("saved", change)
            start = time.monotonic()
            self.refused([("inspect", "forged")], 'its object "g/g" is a group within a group')
            self.assertLess(time.monotonic() - start, 20)  # in proportion to the square of the depth it took minutes

    def test_texts_that_share_their_bytes(self):
        """A hundred thousand names of a megabyte each, in a file of three megabytes."""

        def rename(file):
            del file["/parameters/name"]
            file.create_dataset("/parameters/name", shape=(100000,), dtype=h5py.string_dtype())[0] = "x" * 10**6

        self.forge("saved", rename)
        manifest = self.folder / "forged/step_00000002/manifest.h5"
        with h5py.File(manifest) as file:
            place = file["/parameters/name"].id.get_offset()
        data = bytearray(manifest.read_bytes())
        self.assertEqual(struct.unpack_from("<I", data, place), (10**6,))
        data[place : place + 1600000] = bytes(data[place : place + 16]) * 100000
        manifest.write_bytes(data)
        sign(manifest)
        self.refused([("inspect", "forged")], "texts of dataset /parameters/name have ")

    def test_sparse_manifests_are_not_loaded(self):
        self.forge("saved", lambda file: None)
        with open(self.folder / "forged/step_00000002/manifest.h5", "r+b") as file:
            file.truncate(2**40)
        commands = (("inspect", "forged"), ("generate", "forged", "--prompt", "a"), ("convert", "forged", "out"))
        self.refused(commands, "has 1.00 TiB; a file of its kind has 1.00 GiB at most")

    def test_long_texts(self):
        def lengthen(name):
            def change(file):
                del file.attrs[name]
                file.attrs.create(name, "x" * 60000, dtype=h5py.string_dtype())

            return change

        for name in ("kzero_version", "git_hash", "precision", "optimizer", "arithmetic"):
            self.forge("saved", lengthen(name))
            self.refused([("inspect", "forged")], f"its {name} has 60000 bytes, which no run writes")
        self.forge("saved", set_value("/state_arrays/name", 0, "x" * 900000))
        self.refused([("inspect", "forged")], "its name of an array has 900000 bytes")
        self.forge("saved", set_value("/shards/file", 0, "x" * 900000))
        self.refused([("inspect", "forged")], "which cannot be a file of its folder")


if __name__ == "__main__":
    unittest.main()
