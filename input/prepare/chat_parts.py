"""Writes the fixed texts that a chat template puts around messages, for kzero generate --chat, which does not run Jinja.

    python3 input/prepare_chat_parts.py FOLDER...          # folders of models: writes chat_parts.json into each

A conversation begins with a message of the system or of the user. Then the user and the assistant take turns, and the user's
message is the last. A template is written only if these texts give what it gives on all test conversations. prepare.py --chat
writes the file next to the data.
"""

import argparse
import datetime
import json
import sys
from pathlib import Path

from . import tokenizers_python

NAME = "chat_parts.json"
CONTENTS = (
    "What does a rank own?",
    "A rank owns one shard of the state.\n\nIt sends the others.",
    "  and\twhat {{ of }} <a> node? \n",
    "\u4e2d\u6587 \U0001f600 e\u0301 'quoted' \"twice\" \\n",
    "1. one\n2. two",
    "{% if %}",
    "x",
)
LENGTHS = (1, 3, 5, 7)  # messages without that of the system


def conversation(contents, has_system, length):
    """Messages of the system, if wanted, and `length` of the user and the assistant in turns, with contents from a cycle."""
    roles = ["system"] * has_system + [("user", "assistant")[i % 2] for i in range(length)]
    return [{"role": role, "content": contents[i % len(contents)]} for i, role in enumerate(roles)]


def joins_of(render, has_system):
    """{(role, role): text between their messages} of a conversation of five messages, with "start" and "ask" at its ends."""
    marks = [f"Mark{number}Mark" for number in range(5 + has_system)]
    messages = conversation(marks, has_system, 5)
    text, between = render(messages), []
    for mark in marks:
        before, found, text = text.partition(mark)
        if not found:
            raise ValueError("it changes or moves messages")
        between.append(before)
    roles = ["start", *(message["role"] for message in messages), "ask"]
    joins = {}
    for pair, part in zip(zip(roles, roles[1:]), [*between, text]):
        if joins.setdefault(pair, part) != part:
            raise ValueError("what it writes around a message depends on the message's place")
    return joins


def written(parts, messages):
    """The text that the parts give, as kzero generate writes it."""
    text, last = "", "start"
    for message in messages:
        content = message["content"].strip() if message["role"] in parts["strips"] else message["content"]
        text, last = text + parts["between"][last][message["role"]] + content, message["role"]
    return text + parts["between"][last]["ask"]


def parts_of(render):
    """The parts of a template. `render`: messages to text that ends with the beginning of an answer. Raises ValueError, with the
    reason, if fixed texts do not give what it gives."""
    joins, takes_system = joins_of(render, False), True
    try:
        if not render(conversation(["Mark0Mark"], True, 1)).count("Mark0Mark") == 2:
            raise ValueError
    except ValueError:
        takes_system = False
    if takes_system:
        for pair, text in joins_of(render, True).items():
            if joins.setdefault(pair, text) != text:
                raise ValueError("what it writes around later messages depends on the system's")
    between = {}
    for (first, second), text in joins.items():
        between.setdefault(first, {})[second] = text
    spaced = conversation([" \n Mark0Mark \n "], takes_system, 3)
    parts = {"version": 1, "between": between, "strips": []}
    for role in ("system", "user", "assistant"):
        some = [{**one, "content": one["content"] if one["role"] == role else "x"} for one in spaced]
        if any(one["role"] == role for one in some) and written(parts, some) != render(some):
            parts["strips"].append(role)
    for has_system in (False, True)[: 1 + takes_system]:
        for length in LENGTHS:
            for first in range(len(CONTENTS)):
                messages = conversation(CONTENTS[first:] + CONTENTS[:first], has_system, length)
                if written(parts, messages) != render(messages):
                    raise ValueError("fixed texts do not give a test conversation")
    return parts


def parts_of_template(template):
    """parts_of() for a template.Template, whose failures are reasons too."""
    from .documents import InputError

    def render(messages):
        try:
            return template.render(messages, asks=True)
        except InputError as error:
            raise ValueError(str(error)) from error

    return parts_of(render)


def as_bytes(parts):
    return json.dumps(parts, indent=2, ensure_ascii=False).encode() + b"\n"


def write(folder):
    """Writes the file of a model's folder."""
    from .documents import InputError
    from .template import Template, find_source
    from .tokenizer import configuration_of

    file = folder / "tokenizer_config.json"
    kept = {file.name: file.read_bytes()} if file.is_file() else {}
    template = Template(find_source(folder, configuration_of(kept), None, datetime.date.today()))
    try:
        parts = parts_of_template(template)
    except ValueError as error:
        raise InputError(f"{template.where}: cannot be written as fixed texts: {error}") from error
    partial = folder / f"{NAME}.partial"
    partial.write_bytes(as_bytes(parts))
    partial.replace(folder / NAME)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="a model's folder, with its chat template")
    folders = parser.parse_args().folders
    tokenizers_python.find("jinja2")
    from .documents import InputError

    for folder in folders:
        try:
            write(Path(folder))
        except (InputError, OSError) as error:
            print(f"prepare_chat_parts.py: {error}", file=sys.stderr)
            return 4
        print(f"wrote {Path(folder) / NAME}")
    return 0
