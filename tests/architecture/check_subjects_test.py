"""Proves that check_subjects.py passes good subjects of commits, names each kind of breach and reads new commits only."""

import subprocess
import tempfile
import unittest
from pathlib import Path

from check_subjects import MOST_COMMITS, THIS_FILE, breaches_of, check_subjects


class Subjects(unittest.TestCase):
    def test_good_subjects_pass(self):
        for subject in (
            "Name the node in memory messages",
            "zero: release units in reverse order",
            "README, docs/deck.md: embed the table",
            "Need MPI 3",
            "docs: troubleshooting lists the messages of Slurm",
            "Use bytes: they are added in order",
            "x" * 72,
        ):
            with self.subTest(subject):
                self.assertEqual(list(breaches_of(subject)), [])

    def test_each_breach_is_named(self):
        for subject, breach in (
            ("x" * 73, "73 columns; the limit is 72"),
            ("zero: release units.", "a period at the end"),
            ("Added a key", 'begins with "Added"; write the imperative, such as "Add"'),
            ("deck, docs: adding a key", 'begins with "adding"; write the imperative, such as "Add"'),
        ):
            with self.subTest(subject):
                self.assertEqual(list(breaches_of(subject)), [breach])


class Commits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kzero_subjects_")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments):
        identity = ("-c", "user.name=kzero", "-c", "user.email=kzero@localhost")
        subprocess.run(["git", "-C", self.root, *identity, *arguments], check=True, capture_output=True)

    def commit(self, subject):
        self.git("commit", "-q", "--allow-empty", "-m", subject)

    def add_the_check(self):
        (self.root / THIS_FILE).parent.mkdir(parents=True)
        (self.root / THIS_FILE).touch()
        self.git("add", ".")
        self.commit("Check subjects")

    def test_commits_before_the_check_and_merges_are_exempt(self):
        self.commit("Added an old thing.")
        self.add_the_check()
        self.git("checkout", "-q", "-b", "branch")
        self.commit("zero: good")
        self.git("checkout", "-q", "main")
        self.git("merge", "-q", "--no-ff", "-m", "Merged the branch.", "branch")
        self.assertEqual(check_subjects(self.root), [])

    def test_new_commits_are_checked_on_merged_branches_too(self):
        self.commit("Start")
        self.git("branch", "branch")
        self.add_the_check()
        self.git("checkout", "-q", "branch")
        self.commit("Added a thing")
        self.git("checkout", "-q", "main")
        self.git("merge", "-q", "--no-ff", "-m", "Merge the branch", "branch")
        self.commit("End.")
        last, merged = check_subjects(self.root)
        self.assertTrue(last.endswith(" End.: a period at the end"), last)
        self.assertIn(' Added a thing: begins with "Added"', merged)

    def test_only_the_last_commits_are_read(self):
        self.commit("Oldest.")
        for number in range(MOST_COMMITS - 1):
            self.commit(f"Do {number}")
        self.assertEqual(len(check_subjects(self.root)), 1)
        self.commit("Newest")
        self.assertEqual(check_subjects(self.root), [])


if __name__ == "__main__":
    unittest.main()
