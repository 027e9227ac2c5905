"""Proves that affected.py follows includes, knows what decides how sources are compiled, and finds nothing where nothing is."""

import contextlib
import io
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import affected

FILES = {
    "src/kernels/softmax.cpp": '#include "kernels/softmax.hpp"\n',
    "src/kernels/softmax.hpp": '#include <vector>\n\n#include "base/types.hpp"\n',
    "src/base/types.hpp": "#include <cstdint>\n",
    "src/base/text.cpp": "",
    "src/CMakeLists.txt": "",
    "tests/support/main.cpp": "",
    "tests/support/training.cpp": "",
    "src/kernels/CMakeLists.txt": "",
    "cmake/Targets.cmake": "",
    "README.md": "",
}
OTHERS = ("src/base/text.cpp", "tests/support/training.cpp", "README.md")


class Affected(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kzero_affected_")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.git("init", "-q")
        for name, text in FILES.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        self.commit("Begin")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.root)

    def git(self, *arguments):
        identity = ("-c", "user.name=kzero", "-c", "user.email=kzero@localhost")
        subprocess.run(["git", "-C", self.root, *identity, *arguments], check=True, capture_output=True)

    def commit(self, subject):
        self.git("add", ".")
        self.git("commit", "-q", "-m", subject)

    def change(self, name, line="new"):
        with open(self.root / name, "a") as file:
            file.write(line + "\n")
        self.commit("Change a file")

    def result(self, commits):
        """The exit code, and what is printed."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = affected.main(str(commits), "src/kernels", "tests/support/main.cpp")
        return code, printed.getvalue().strip()

    def test_what_the_folder_holds_or_reaches_is_found(self):
        for name in sorted(set(FILES).difference(OTHERS)):
            with self.subTest(name):
                self.change(name)
                self.assertEqual(self.result(1), (0, name))

    def test_a_deleted_file_is_found(self):
        (self.root / "src/kernels/softmax.cpp").unlink()
        self.commit("Delete a file")
        self.assertEqual(self.result(1), (0, "src/kernels/softmax.cpp"))

    def test_other_files_are_not(self):
        for name in OTHERS:
            self.change(name)
        self.assertEqual(self.result(3), (3, ""))

    def test_comments_are_not(self):
        self.change("src/base/types.hpp", "  /// A comment.")
        self.change("src/kernels/softmax.cpp", "//\n// A comment.")
        self.change("cmake/Targets.cmake", "# A comment.")
        self.assertEqual(self.result(3), (3, ""))

    def test_code_in_the_last_line_of_a_comment_is_found(self):
        self.change("src/base/types.hpp", "// New.\nint fresh;  // New.")
        self.assertEqual(self.result(1), (0, "src/base/types.hpp"))

    def test_what_clang_tidy_reads_is_found(self):
        self.change("src/base/types.hpp", "// NOLINTNEXTLINE")
        self.assertEqual(self.result(1), (0, "src/base/types.hpp"))

    def test_only_the_last_commits_count(self):
        self.change("src/base/types.hpp")
        self.change("README.md")
        self.assertEqual(self.result(1), (3, ""))
        self.assertEqual(self.result(2), (0, "src/base/types.hpp"))

    def test_a_shorter_history_hides_nothing(self):
        self.assertEqual(self.result(1), (0, "the history is shorter than 1 commits"))


if __name__ == "__main__":
    unittest.main()
