#!/usr/bin/env python3
"""Compares input/prepare.py --chat with transformers: texts, tokens and targets of conversations.

    VENV/bin/python compare_chat.py [TEMPLATE.jinja ...]

VENV has transformers and jinja2, but needs no torch. It is run by hand, after a change of input/prepare/template.py or
turns.py. The templates are those of tests/prepare and the given files. Conversations are drawn at random, with contents that
begin and end with spaces and line ends. Compared with apply_chat_template: the text, with and without the beginning of an answer, the
tokens, and for templates with generation blocks the targets (return_assistant_tokens_mask). transformers counts tokens that are
partly in a block as targets, and prepare.py does not: these and the first token of a document alone may differ. For each template it prints how prepare.py finds
targets with it, or why it refuses it.
"""

import datetime
import os
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "input"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "prepare"))
os.environ["PREPARE"] = "prepare.py"  # chat_case needs it, but only its tokenizer is used here

import chat_templates
import transformers as hf
from chat_case import make_tokenizer
from prepare.chat_encoding import TARGET, mark, without_post_processor
from prepare.documents import InputError
from prepare.template import Source, Template
from prepare.turns import Turns, check_template, special_pattern

hf.logging.set_verbosity_error()
TOKENS = {"bos_token": "<s>", "eos_token": "<|endoftext|>"}
TEXTS = [
    "hello",
    "A rank owns",
    "\u4e2d\u6587 \U0001f600",
    "e\u0301",
    "<think>\nhello\n</think>\n\nthere",
    "{'a': 1}",
    "<b>&amp;",
]
ENDS = ["", "", "", " ", "\n", "\n\n"]
CONVERSATIONS = 100


def conversation(draw):
    text = lambda: draw.choice(ENDS) + " ".join(draw.choices(TEXTS, k=draw.randint(1, 3))) + draw.choice(ENDS)
    messages = [{"role": "system", "content": text()}] if draw.random() < 0.3 else []
    for _ in range(draw.randint(1, 3)):
        messages += [{"role": "user", "content": text()}, {"role": "assistant", "content": text()}]
    return messages


def attempt(render, *arguments, **options):
    """The rendered text, or None if the template fails."""
    try:
        return render(*arguments, **options)
    except Exception:  # jinja2's, or InputError
        return None


def compare(template, tokenizer, theirs, text, draw):
    """(conversations that were rendered, differences)."""
    rendered, differences = 0, 0
    theirs.chat_template = text
    for _ in range(CONVERSATIONS):
        messages = conversation(draw)
        for asks in (False, True):
            ours = attempt(template.render, messages, asks=asks)
            other = attempt(theirs.apply_chat_template, messages, tokenize=False, add_generation_prompt=asks)
            differences += ours != other
        if ours is None:
            continue
        rendered += 1
        options = {"tokenize": True, "return_dict": True, "return_assistant_tokens_mask": template.has_generation}
        other = theirs.apply_chat_template(messages, **options)
        plain, ranges = template.render_marked(messages)
        encoding = tokenizer.encode(plain, add_special_tokens=False)
        differences += list(encoding.ids) != list(other["input_ids"])
        if template.has_generation:
            tokens, _ = mark(encoding, ranges)
            edges = {edge for one in ranges for edge in one}
            partly = [any(begin < edge < end for edge in edges) for begin, end in encoding.offsets]
            targets = zip(tokens, other["assistant_masks"], partly)
            next(targets)  # the first token, which is never a target here
            for token, theirs_is_target, is_partly in targets:
                differences += not is_partly and bool(token & TARGET) != bool(theirs_is_target)
    return rendered, differences


def verdict(template, special, tokenizer):
    encode = lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    said = []
    for each_turn in (False, True):
        try:
            check_template(Turns(template, special, each_turn), encode)
            said.append("accepted")
        except InputError as error:
            said.append(str(error).partition("test conversation: ")[2] or "not with --each-turn")
    return said[0] if said[0] == said[1] or template.has_generation else f"{said[0]}; --each-turn: {said[1]}"


def main():
    texts = {name: text for name, text in vars(chat_templates).items() if name.isupper()}
    texts.update((pathlib.Path(name).name, pathlib.Path(name).read_text()) for name in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "tokenizer.json"
        make_tokenizer(file)
        tokenizer = without_post_processor(file.read_bytes())
        theirs = hf.PreTrainedTokenizerFast(tokenizer_file=str(file), clean_up_tokenization_spaces=False, **TOKENS)
    special, wrong = special_pattern(tokenizer), 0
    for name, text in texts.items():
        template = Template(Source(text, name, TOKENS, datetime.date.today()))
        if name == "CHANGES_ITS_BLOCKS":  # the ranges of both are wrong, and ours is refused
            continue
        rendered, differences = compare(template, tokenizer, theirs, text, random.Random(1))
        wrong += differences
        kind = "generation blocks" if template.has_generation else "turns"
        print(f"{name}: {rendered} conversations, {differences} differences; {kind}: {verdict(template, special, tokenizer)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
