"""Reads a checkpoint that the tests wrote with nothing but h5py, and checks every value.

Arguments: its folder, ranks, files."""

import sys
from pathlib import Path

import h5py
import numpy as np

folder, ranks, shards = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
with h5py.File(folder / "manifest.h5", "r") as manifest:
    attrs = manifest.attrs
    assert attrs["format_version"] == 3
    assert (attrs["step"], attrs["tokens"], attrs["data_ranks"]) == (7, 7000, ranks)
    assert attrs["precision"] == "bf16" and attrs["loss_scale"] == 4096.0
    assert manifest["model"].attrs["hidden"] == 48
    assert manifest["deck"][()].decode().startswith("[model]\n")
    names = [name.decode() for name in manifest["parameters/name"]]
    shapes = [tuple(n for n in row if n) for row in manifest["parameters/shape"]]
    files = [name.decode() for name in manifest["shards/file"]]
    assert list(manifest["shards/bytes"]) == [(folder / file).stat().st_size for file in files]
    assert len(files) == shards
    states = [name.decode() for name in manifest["state_arrays/name"]]
    assert states == ["master", "first_moment", "second_moment"]
    assert set(manifest["state_arrays/type"]) == {b"float32"} and set(manifest["state_arrays/extent"]) == {b"element"}
    assert manifest["state_shards/offset"].shape == (len(manifest["state_shards/shard_file"]), len(states))

model = {name: {s: np.full(np.prod(shape), np.nan, np.float32) for s in states} for name, shape in zip(names, shapes)}
for file in files:
    with h5py.File(folder / file, "r") as shard:
        for name, group in shard.items():
            assert tuple(group.attrs["shape"]) == shapes[names.index(name)]
            parts = group.attrs["part_elements"]
            for state in states:
                assert group[state].attrs["xxh3_64"].dtype == np.uint64
                assert len(group[state].attrs["xxh3_64"]) == len(parts) and sum(parts) == group[state].size
                at = 0
                for begin, count, stride, repeat in group["runs"]:
                    for first in range(begin, begin + repeat * stride, stride):
                        model[name][state][first : first + count] = group[state][at : at + count]
                        at += count

for p, name in enumerate(names):
    for s, state in enumerate(states):
        element = np.arange(model[name][state].size, dtype=np.float32)
        expected = (
            element * np.float32(0.25)
            + np.float32(p) * np.float32(1e5)
            + np.float32(s) * np.float32(1e7)
            + np.float32(7) / np.float32(1024)
        )
        np.testing.assert_allclose(model[name][state], expected, rtol=3e-7)
