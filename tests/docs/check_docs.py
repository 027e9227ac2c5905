"""Checks what the documentation names; prints every breach and exits with 1 if there is one.

    python3 check_docs.py ROOT KZERO

Relative links lead to files; files, subcommands, options, presets and deck keys in code exist. KZERO: the program. Prose is
wrapped at 100 columns in all documents, those of the folders included.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

FOLDERS = {".ci", "cmake", "docs", "input", "jobscripts", "postprocess", "src", "tests"}
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"^(?: {4}[^\n]*|```.*?^```)$|(?<!`)`[^`\n]+`", re.M | re.S)
COMMAND = re.compile(r"(?:^|[\s`/])kzero +([a-z]+)([^\n`#]*)")
LONGEST_LINE = 100
MARKER = re.compile(r"\s*(?:(?:[-+*]|\d+[.)])\s+)?")  # indent and list marker
UNBROKEN = re.compile(r"(?:`[^`]*`|[^\s`])+")  # no line ends within it; a code span stays on one line
NO_PROSE = re.compile(r"\s*(?:#|\||<|\[[^\]]+\]:)")  # headings, tables, HTML, targets of links
OVERRIDE = re.compile(r"\b([a-z]+(?:\.[a-z_0-9]+)?\[\d+\]\.[a-z_0-9]+|[a-z]+\.[a-z_0-9]+)=")


def program(executable):
    """help_of(SUBCOMMAND), and the text of `kzero defaults`."""

    def output(*arguments):
        return subprocess.run([executable, *arguments], check=True, capture_output=True, text=True).stdout

    return lambda command: output(*command.split(), "--help"), output("defaults")


def keys_of(defaults):
    """The keys; those of lists of tables, which are comments, as data.blend[].weight, and the lists themselves."""
    keys, table = set(), ""
    for line in defaults.splitlines():
        if header := re.match(r"\[(\w+)\]", line):
            table = header.group(1)
        elif header := re.match(r"# \[\[([\w.]+)\]\]", line):
            table = header.group(1) + "[]"
            keys.add(header.group(1))
        elif key := re.match(r"(?:# )?(\w+) =", line):
            keys.add(f"{table}.{key.group(1)}")
    return keys


def bad_paths(root, code):
    for word in re.findall(r"[\w.*/-]+", code):
        folder, _, rest = word.rstrip(".").partition("/")
        if not folder or not rest or re.search(r"\b[A-Z]{2,}\b", rest):  # DECK and the like stand for a name
            continue
        if folder in FOLDERS:
            found = any(root.glob(word.rstrip("./")))
        else:  # a source as it is included, with or without its ending
            inside = (root / "src" / folder).is_dir() and not word.endswith(".bin")  # token files lie in data/, too
            found = not inside or any((root / "src").glob(f"{word.rstrip('./')}*"))
        if not found:
            yield f"there is no {word}"


def bad_commands(code, help_of):
    for command, rest in COMMAND.findall(code):
        if not re.search(rf"^  {command} ", help_of(""), re.M):
            yield f"kzero has no subcommand {command}"
            continue
        for option in re.findall(r"(?<!\S)--[a-z-]+", rest):
            if option not in re.findall(r"--[a-z-]+", help_of(command)):
                yield f"kzero {command} has no option {option}"


def bad_settings(root, code, keys):
    presets = {p["name"] for p in json.loads((root / "CMakePresets.json").read_text())["buildPresets"]}
    for preset in re.findall(r"--preset[ =](\w+)", code):
        if preset not in presets:
            yield f"there is no preset {preset}"
    for option in re.findall(r"-D(KZERO_\w+)", code):
        if not re.search(rf"(?:option|set)\({option} ", (root / "CMakeLists.txt").read_text()):
            yield f"CMakeLists.txt has no option {option}"
    for key in OVERRIDE.findall(code):
        if re.sub(r"\d+(?=\])", "", key) not in keys:
            yield f"there is no key {key}"


def prose_of(text):
    """(line number, line) of each line that can be wrapped: it is not code, a heading, a table, HTML or the target of a link."""
    fenced, after_blank = False, True
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced, after_blank = not fenced, True
        elif fenced or (after_blank and line.startswith("    ")):
            continue
        elif not line.strip() or line.startswith("#"):
            after_blank = True
        else:
            after_blank = False
            if not NO_PROSE.match(line):
                yield number, line


def check_columns(root):
    for path in sorted([*root.glob("*.md"), *(path for folder in FOLDERS for path in (root / folder).rglob("*.md"))]):
        for number, line in prose_of(path.read_text()):
            if len(line) > LONGEST_LINE and len(UNBROKEN.findall(MARKER.sub("", line, count=1))) > 1:
                yield f"{path.relative_to(root)}:{number}: {len(line)} columns of prose; wrap it at {LONGEST_LINE}"


def check_docs(root, help_of, defaults):
    keys = keys_of(defaults)
    problems = [] if keys else ["kzero defaults shows no keys"]
    for path in [root / "README.md", *sorted(root.glob("docs/*.md"))]:
        text = path.read_text()
        found = []
        for match in LINK.finditer(text):
            target = match.group(1)
            if "://" not in target and not (path.parent / target).exists():
                found.append((match.start(), f"the link to {target} leads nowhere"))
        for match in CODE.finditer(text):
            code = match.group().strip("`")
            breaches = [*bad_paths(root, code), *bad_commands(code, help_of), *bad_settings(root, code, keys)]
            found += [(match.start(), breach) for breach in breaches]
        problems += [f"{path.relative_to(root)}:{text.count(chr(10), 0, at) + 1}: {what}" for at, what in sorted(found)]
    return problems + list(check_columns(root))


if __name__ == "__main__":
    breaches = check_docs(Path(sys.argv[1]), *program(sys.argv[2]))
    print("\n".join(breaches) or "every link, file, command, option, preset and key exists, and prose is wrapped")
    sys.exit(1 if breaches else 0)
