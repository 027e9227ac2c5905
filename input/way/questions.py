#!/usr/bin/env python3
"""Turns conversations of one question and one answer into the lines of input/whole_way.sh.

    python3 input/way/questions.py input/questions.jsonl FOLDER

Writes FOLDER/questions.jsonl, with a prompt and a completion a line, FOLDER/pairs.jsonl, in which the answer to the question is
chosen and the answer to another question rejected, and FOLDER/asked.jsonl with three of the prompts.
"""

import json
import sys
from pathlib import Path


def main(source, folder):
    lines = [json.loads(line)["messages"] for line in Path(source).read_text(encoding="utf-8").splitlines()]
    asked = [f"Question: {question['content']}\nAnswer:" for question, _ in lines]
    answers = [f" {answer['content']}" for _, answer in lines]
    others = answers[len(answers) // 2 :] + answers[: len(answers) // 2]
    questions = [{"prompt": prompt, "completion": answer} for prompt, answer in zip(asked, answers, strict=True)]
    pairs = [
        {"prompt": prompt, "chosen": answer, "rejected": other}
        for prompt, answer, other in zip(asked, answers, others, strict=True)
    ]
    Path(folder).mkdir(parents=True, exist_ok=True)
    few = [{"prompt": prompt} for prompt in asked[:3]]
    for name, found in (("questions", questions), ("pairs", pairs), ("asked", few)):
        Path(folder, f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in found), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
