"""cmake/libraries.sh with a curl and a cmake that note how they were called: what it downloads, refuses and builds again."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "cmake/libraries.sh").read_text()


class Libraries(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kzero_libraries_")
        self.addCleanup(folder.cleanup)
        self.tree = Path(folder.name)
        self.calls = self.tree / "calls"
        for name in ("bin", "cmake", "source"):
            (self.tree / name).mkdir()
        (self.tree / "source/CMakeLists.txt").touch()
        (self.tree / "source/source").mkdir()
        self.script("../source/source/configure", 'echo "configure $LDFLAGS $*" >>"$CALLS"')
        subprocess.run(["tar", "-cJf", self.tree / "good.tar.xz", "-C", self.tree, "source"], check=True)
        digest = hashlib.sha256((self.tree / "good.tar.xz").read_bytes()).hexdigest()
        # The script gets this archive instead of those of CLI11, fmt, HDF5 and ICU.
        text, count = re.subn(r"(get \w/(?:cli11|fmtlib|hdf5|icu)/\S+) [0-9a-f]{64}", rf"\1 {digest}", TEXT)
        self.assertEqual(count, 4)
        (self.tree / "cmake/libraries.sh").write_text(text)
        self.script("curl", 'while [[ $1 != --output ]]; do shift; done\necho "curl $3" >>"$CALLS"\ncp "$SOURCE" "$2"')
        self.script("cmake", 'echo "cmake $*" >>"$CALLS"')

    def script(self, name, body):
        path = self.tree / "bin" / name
        path.write_text(f"#!/bin/bash\nset -e\n{body}\n")
        path.chmod(0o755)

    def build(self, *names, source="good.tar.xz", **variables):
        environment = {
            "PATH": f"{self.tree}/bin:{os.environ['PATH']}",
            "CALLS": str(self.calls),
            "SOURCE": str(self.tree / source),
            "KZERO_ARCHIVE": "https://mirror/pool",
            **variables,
        }
        self.calls.write_text("")
        done = subprocess.run(
            ["bash", self.tree / "cmake/libraries.sh", *names], env=environment, capture_output=True, text=True, timeout=60
        )
        return done, self.calls.read_text().splitlines()

    def test_a_library_is_downloaded_configured_built_and_installed_once(self):
        done, calls = self.build("cli11")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(calls[0], r"^curl https://mirror/pool/c/cli11/cli11_\S+\.tar\.xz$")
        self.assertIn(f"-DCMAKE_INSTALL_PREFIX={self.tree}/.deps/libraries", calls[1])
        self.assertRegex(calls[2], "^cmake --build ")
        self.assertRegex(calls[3], "^cmake --install ")
        self.assertEqual(len(calls), 4)
        done, calls = self.build("cli11")
        self.assertEqual((done.returncode, done.stdout, calls), (0, "", []))

    def test_static_libraries_have_a_folder_of_their_own(self):
        self.script("mpicc", "")
        done, calls = self.build("static")
        self.assertEqual(done.returncode, 0, done.stderr)
        configured = [call for call in calls if call.startswith("cmake -S")]
        self.assertEqual(len(configured), 2)
        for call in configured:
            self.assertIn(f" -DCMAKE_INSTALL_PREFIX={self.tree}/.deps/static ", call)
            self.assertIn(" -DBUILD_SHARED_LIBS=OFF ", call)
        self.assertIn(f" -DMPI_C_COMPILER={self.tree}/bin/mpicc ", configured[1])
        done, calls = self.build("fmt")
        self.assertIn(f" -DCMAKE_INSTALL_PREFIX={self.tree}/.deps/libraries ", calls[0])
        self.assertIn(" -DBUILD_SHARED_LIBS=ON ", calls[0])

    def test_others_do_not_become_static(self):
        done, calls = self.build("static", "fmt", "icu")
        self.assertEqual((done.returncode, calls), (2, []))
        self.assertEqual(done.stderr, "libraries.sh: only fmt and hdf5 become static, not icu\n")
        done, calls = self.build("hdf5")
        self.assertEqual((done.returncode, calls), (2, []))

    def test_the_compiler_of_mpi_is_needed_for_hdf5(self):
        done, _ = self.build("static", "hdf5", MPICC="mpicc.of_nobody")
        self.assertEqual(done.returncode, 1)
        self.assertIn("libraries.sh: mpicc.of_nobody is missing, the compiler of the MPI that HDF5 is for\n", done.stderr)

    def test_libraries_of_icu_find_one_another(self):
        self.script("make", 'echo "make $*" >>"$CALLS"')
        done, calls = self.build("icu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(
            calls[1], f"^configure -Wl,-rpath,{self.tree}/.deps/libraries/lib .*--prefix={self.tree}/.deps/libraries "
        )
        self.assertEqual([call.split()[0] for call in calls[2:]], ["make", "make"])

    def test_debians_archive_is_the_one_that_is_asked(self):
        done, calls = self.build("cli11", KZERO_ARCHIVE="")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(calls[0], "^curl https://deb.debian.org/debian/pool/main/c/cli11/")

    def test_a_source_that_the_archive_lacks_is_named(self):
        self.script("curl", 'echo "curl" >>"$CALLS"; exit 22')
        done, calls = self.build("cli11")
        self.assertEqual((done.returncode, calls), (1, ["curl"]))
        self.assertRegex(done.stderr, r"libraries.sh: https://mirror/pool/c/cli11/\S+ could not be downloaded\n")
        self.assertFalse(list((self.tree / ".deps/source").iterdir()))

    def test_a_source_with_another_checksum_is_refused_before_it_is_unpacked(self):
        (self.tree / "bad.tar.xz").write_text("something else")
        done, calls = self.build("cli11", source="bad.tar.xz")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(
            done.stderr, r"cli11_\S+ is not what was expected \(SHA-256 [0-9a-f]{64}\); remove it to download it again"
        )
        self.assertEqual(len(calls), 1, calls)
        self.assertFalse((self.tree / ".deps/source/build-cli11").exists())

    def test_a_build_that_fails_is_named_and_tried_again(self):
        self.script("cmake", 'echo "cmake $*" >>"$CALLS"; [[ $1 != --build ]]')
        done, calls = self.build("cli11")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"libraries.sh: cli11 failed; the whole log is {self.tree}/.deps/build-cli11.log", done.stderr)
        self.assertEqual(len(calls), 3, calls)
        done, calls = self.build("cli11")
        self.assertEqual((done.returncode, len(calls)), (1, 2), "the source is downloaded once")

    def test_an_unknown_name_is_refused_before_anything_is_downloaded(self):
        done, calls = self.build("cli11", "boost")
        self.assertEqual((done.returncode, calls), (2, []))
        self.assertEqual(done.stderr, "libraries.sh: 'boost' is not one of cli11, fmt, icu, json, toml, xxhash\n")

    @unittest.skipUnless(shutil.which("dpkg"), "versions are compared by dpkg")
    def test_its_versions_are_those_that_cmake_asks_for_or_newer(self):
        asking = "".join((ROOT / f"cmake/{name}.cmake").read_text() for name in ("Dependencies", "MpiAndHdf5"))
        wanted = dict(re.findall(r"find_package\((\w+) ([\d.]+)", asking))
        names = {
            "cli11": "CLI11",
            "fmtlib": "fmt",
            "hdf5": "HDF5",
            "icu": "ICU",
            "nlohmann-json3": "nlohmann_json",
            "tomlplusplus": "tomlplusplus",
        }
        loaded = dict(re.findall(r"get \S+/([\w-]+)_([\d.]+)", TEXT))
        self.assertEqual(set(loaded), {*names, "xxhash"})
        for name, package in names.items():
            subprocess.run(["dpkg", "--compare-versions", loaded[name], "ge", wanted[package]], check=True)


if __name__ == "__main__":
    unittest.main()
