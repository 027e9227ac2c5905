"""Checks the subjects of new commits; prints every breach and exits with 1 if there is one.

    python3 check_subjects.py ROOT

New are the commits after the one that added this file, at most the last 50. Merge commits are exempt. A subject has at most 72
columns and no period at its end. It begins with a verb in the imperative, perhaps after folders and a colon: "zero: release units
in reverse order". A program cannot check the mood, but it can refuse "Added" and "Adding". After "docs:" it cannot, because
the name of a document may come first: "docs: troubleshooting lists the messages of Slurm".
"""

import re
import subprocess
import sys
from pathlib import Path

LONGEST = 72
MOST_COMMITS = 50
THIS_FILE = "tests/architecture/check_subjects.py"
FOLDERS = re.compile(r"[\w./+-]+(?:, [\w./+-]+)*: ")
OTHER_MOOD = re.compile(r"[a-z]+(?:ed|ing)\b", re.I)
IMPERATIVES = set("bring embed exceed feed need ping proceed seed shed shred speed string succeed".split())


def breaches_of(subject):
    if len(subject) > LONGEST:
        yield f"{len(subject)} columns; the limit is {LONGEST}"
    if subject.endswith("."):
        yield "a period at the end"
    first = OTHER_MOOD.match(FOLDERS.sub("", subject, count=1))
    if first and first.group().lower() not in IMPERATIVES and not subject.startswith("docs: "):
        yield f'begins with "{first.group()}"; write the imperative, such as "Add"'


def new_commits(root):
    """[(short hash, subject)], the newest first. All commits are new where none added this file."""

    def log(*arguments):
        command = ["git", "-C", root, "log", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

    added = log("-1", "--diff-filter=A", "--format=%H", "--", THIS_FILE)
    commits = f"{added[0]}..HEAD" if added else "HEAD"
    return [line.split(" ", 1) for line in log("--no-merges", f"-{MOST_COMMITS}", "--format=%h %s", commits)]


def check_subjects(root):
    return [f"{commit} {subject}: {breach}" for commit, subject in new_commits(root) for breach in breaches_of(subject)]


if __name__ == "__main__":
    breaches = check_subjects(Path(sys.argv[1]))
    print("\n".join(breaches) or "every new subject is as it should be")
    sys.exit(1 if breaches else 0)
