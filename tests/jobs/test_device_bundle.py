"""tests/device/bundle.sh: what is packed, and that the decks of first_hour.sh's runs are valid."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/device"))
import correctness  # noqa: E402
import features  # noqa: E402
import launches  # noqa: E402
import nccl  # noqa: E402
import pack  # noqa: E402
import programs  # noqa: E402
import speed  # noqa: E402
import training  # noqa: E402

PATIENCE = 60


class Pack(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kzero_pack_")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.stage, self.archive = self.folder / "stage", self.folder / "a.tar.xz"
        self.stage.mkdir()
        for name in ("closure", "has_own_runtime", "needs_newer_system", "put"):
            patch = mock.patch.object(pack, name, getattr(self, name))
            patch.start()
            self.addCleanup(patch.stop)
        self.programs = [self.folder / name for name in ("kzero", "test_a", "test_b", "mpiexec")]
        for program in self.programs:
            program.write_bytes(os.urandom(10000))

    def closure(self, programs):
        return {"libx.so.1": self.folder / "kzero"}

    def has_own_runtime(self, program):
        return False

    def needs_newer_system(self, program):
        return []

    def put(self, source, target):
        target.parent.mkdir(exist_ok=True)
        shutil.copy(source, target)

    def names(self):
        with tarfile.open(self.archive) as tar:
            return [member.name for member in tar if member.isfile()]

    def test_test_programs_are_left_out_from_the_end_until_it_fits(self):
        self.assertEqual(pack.pack(self.programs, self.stage, self.archive, 100000, True), [])
        self.assertEqual(pack.pack(self.programs, self.stage, self.archive, 35000, True), ["test_b"])
        self.assertEqual(self.names(), ["bin/kzero", "bin/mpiexec", "bin/test_a", "lib/libx.so.1"])
        self.assertLessEqual(self.archive.stat().st_size, 35000)

    def test_what_does_not_fit_without_tests_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "without any test program; the limit is 5000"):
            pack.pack(self.programs, self.stage, self.archive, 5000, True)
        self.assertFalse(self.archive.exists())

    def test_the_same_files_make_the_same_archive(self):
        pack.pack(self.programs, self.stage, self.archive, 100000, False)
        first = self.archive.read_bytes()
        os.utime(self.programs[0], (1, 1))
        pack.pack(self.programs, self.stage, self.archive, 100000, False)
        self.assertEqual(self.archive.read_bytes(), first)

    def test_a_second_cuda_runtime_is_refused(self):
        own = mock.patch.object(pack, "has_own_runtime", return_value=True)
        with own, self.assertRaisesRegex(SystemExit, "contains a CUDA runtime"):
            pack.pack(self.programs, self.stage, self.archive, 100000, True)

    def test_what_needs_a_newer_system_is_refused(self):
        newer = mock.patch.object(pack, "needs_newer_system", return_value=["GLIBC_2.41"])
        with newer, self.assertRaisesRegex(SystemExit, "kzero needs GLIBC_2.41, which Ubuntu 24.04 lacks"):
            pack.pack(self.programs, self.stage, self.archive, 100000, True)


class Closure(unittest.TestCase):
    def closure(self, text):
        with tempfile.TemporaryDirectory() as folder:
            tool = Path(folder) / "ldd"
            tool.write_text(f"#!/bin/bash\ncat <<'end'\n{text}\nend\n")
            tool.chmod(0o755)
            return pack.closure(["program"], tool)

    def test_libraries_of_the_system_and_of_cuda_are_left_out(self):
        found = self.closure(
            "\tlinux-vdso.so.1 (0x1)\n\tlibfmt.so.9 => /lib/libfmt.so.9 (0x2)\n\tlibc.so.6 => /lib/libc.so.6 (0x3)\n"
            "\tlibcudart.so.13 => /cuda/libcudart.so.13 (0x4)\n\tlibcuda.so.1 => not found\n\tlibcurl.so.4 => /lib/libcurl.so.4 (0x5)\n"
            "\tlibcom_err.so.2 => /lib/libcom_err.so.2 (0x6)\n\tlibcudnn.so.9 => not found"
        )
        self.assertEqual(list(found), ["libfmt.so.9", "libcurl.so.4", "libcom_err.so.2"])
        self.assertEqual(found["libfmt.so.9"], "/lib/libfmt.so.9")

    def test_a_library_that_is_missing_here_is_an_error(self):
        with self.assertRaisesRegex(SystemExit, "program needs libx.so.1, which is not on this machine"):
            self.closure("\tlibx.so.1 => not found")


class Symbols(unittest.TestCase):
    def test_versions_beyond_those_of_the_other_machine_are_named(self):
        text = "Name: GLIBC_2.2.5\nName: GLIBC_2.41\nName: GLIBC_2.39\nName: GLIBCXX_3.4.33\nName: GLIBCXX_3.4.34\nName: CXXABI_1.3.15"
        self.assertEqual(pack.too_new(text), ["GLIBC_2.41", "GLIBCXX_3.4.34"])
        self.assertEqual(pack.too_new("Name: GLIBC_ABI_DT_RELR\nName: GLIBC_PRIVATE"), [])

    def test_the_needs_of_a_program_are_read_and_not_what_it_offers(self):
        with mock.patch.dict(pack.NEWEST, {"GLIBC": (2, 0)}):
            needs = pack.needs_newer_system(os.environ["KZERO"])
            self.assertTrue(needs)
            self.assertEqual({name.partition("_")[0] for name in needs}, {"GLIBC"})


class References(unittest.TestCase):
    """The results of a host that are in the repository."""

    def test_they_are_of_the_text_that_is_packed_and_of_all_runs(self):
        found = json.loads((ROOT / "tests/device/references.json").read_text())
        self.assertEqual(found["text_sha256"], hashlib.sha256(training.fixed_text()).hexdigest())
        self.assertEqual({len(run["loss"]) for run in found["runs"].values()}, {training.STEPS})
        self.assertEqual(list(found["features"]), [name for name, _ in features.CASES])


class Decks(unittest.TestCase):
    """The runs of all parts, checked by the program of this build."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kzero_decks_")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "decks").symlink_to(ROOT / "input")
        (self.folder / "text").write_text("words " * 100)
        self.machine = programs.Machine(self.folder, ROOT, self.folder, self.folder)

    def check(self, deck, overrides):
        keys = [f"{key}={value}" for key, value in overrides.items()]
        command = [os.environ["KZERO"], "check", self.folder / "decks" / deck, *keys]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, f"{deck} {keys}\n{done.stderr}")

    def test_speed(self):
        for _, deck, case in speed.CASES:
            profile = {"run.profile": self.folder / "trace.json", "run.profile_steps": f"{speed.PROFILED}-{speed.PROFILED}"}
            self.check(deck, speed.overrides_for(self.machine, case) | profile)

    def test_correctness(self):
        for precision in ("fp32", "bf16"):
            for attention in ("kzero", "cudnn"):
                overrides = training.overrides_of(self.folder, precision) | {"run.attention": attention}
                self.check(correctness.GPT2, overrides)
        self.check("tiny.toml", training.overrides_of(self.folder, "fp32") | {"train.steps": 1})

    def test_features(self):
        for changes in [{}, *(changes for _, changes in features.CASES)]:
            if "lora.rank" not in changes:  # needs weights, which a run before it saves
                self.check(features.DECK, features.SMALL_LLAMA | {"data.files": self.folder / "text"} | changes)

    def test_nccl(self):
        for changes in [nccl.LONG, *(changes for _, _, changes in (*nccl.SAME_BITS, *nccl.CLOSE))]:
            self.check(launches.TINY, launches.SMALL | {"data.files": self.folder / "text"} | nccl.NCCL | changes)

    def test_launches(self):
        for changes in (
            {"zero.stage": 3, "zero.overlap": "on"},
            {"zero.offload": "host", "recompute.mode": "full", "recompute.offload": "host", "zero.stage": 3},
            {
                "checkpoint.folder": self.folder / "saved",
                "checkpoint.every": 2,
                "checkpoint.asynchronous": "true",
                "run.max_steps": 3,
            },
        ):
            self.check(launches.TINY, launches.SMALL | {"data.files": self.folder / "text"} | changes)


if __name__ == "__main__":
    unittest.main()
