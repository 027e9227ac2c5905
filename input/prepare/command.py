"""Makes token files from text: trains a tokenizer or uses a given one, encodes with all cores, and writes llm.c's shards.

    python3 input/prepare.py FILE|FOLDER... -o DATA                         # trains a byte-level BPE of 8192 tokens
    python3 input/prepare.py corpus/ -o DATA --vocab 32000 --validation 0.005
    python3 input/prepare.py more.jsonl.gz -o DATA --name more --tokenizer DATA
    python3 input/prepare.py hellaswag_val.jsonl -o DATA --choices           # a task with several endings, for kzero evaluate
    python3 input/prepare.py chats.jsonl -o DATA --chat --tokenizer MODEL    # chats, to tune the model of a Hugging Face folder
    python3 input/prepare.py corpus/ -o DATA --documents --sequence 2048 --name more --tokenizer MODEL    # text to train with them

Writes NAME_train_000000.bin and following, NAME_val_000000.bin and following, tokenizer.json and tokenizer_config.json. Prints the
lines for the deck. Reads text, JSON lines and arrays, CSV and parquet. A folder means all text and JSON lines in it, program
sources included; skipped files are counted. The end token comes before each document, as in llm.c. The text of a special token within a document stays text.
The files do not depend on the number of processes. With --chat, writes NAME_train.docs and NAME_val.docs: documents in which what
the assistant writes is marked as target. With --documents, all tokens of text are targets. See docs/data.md.
"""

import argparse
import codecs
import datetime
import json
import os
import signal
import sys
import time
from pathlib import Path

from . import tokenizers_python
from .choices import write_choices
from .documents import InputError
from .files import DEFAULT_SUFFIXES, find_files, printable, skipped_text, suffixes
from .shards import Output
from .text import Corpus, sides_summary, write_text
from .tokenizer import (
    choose_end_token,
    configuration,
    highest_id,
    take_tokenizer,
    tokenizer_file,
    tokens_around,
    train_tokenizer,
)


def whole_number(text):
    """An integer above 0, with K, M or G for thousands, millions or billions."""
    factor = {"K": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:].upper(), 1)
    value = int(text if factor == 1 else text[:-1]) * factor
    if value < 1:
        raise ValueError
    return value


def fraction(text):
    value = float(text)
    if not 0 <= value <= 0.5:
        raise ValueError
    return value


def encoding(text):
    """Python's name of an encoding of text."""
    try:
        "a".encode(text)  # fails for codecs that do not encode text, such as base64
        return codecs.lookup(text).name
    except (LookupError, UnicodeError) as error:
        raise argparse.ArgumentTypeError(f"there is no encoding {text!r} of text") from error


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="text, JSON lines or arrays, CSV or parquet, or a folder of such files")
    add("-o", "--output", required=True, metavar="FOLDER", help="where the files are written")
    either = parser.add_mutually_exclusive_group().add_argument
    either("--vocab", type=whole_number, default=8192, metavar="N", help="tokens of the tokenizer to train (default 8192)")
    either("--tokenizer", metavar="PATH", help="a tokenizer.json, or a folder with one, instead of training one")
    add(
        "--training-only",
        action="store_true",
        help="accept a tokenizer that kzero cannot read, and do not copy it: kzero generate then has no text",
    )
    add("--name", default="text", help="the beginning of the files' names (default text)")
    add(
        "--validation",
        type=fraction,
        default=0.01,
        metavar="F",
        help="fraction of the text that is kept for validation, up to 0.5; documents are drawn by their content (default 0.01)",
    )
    add("--unique", action="store_true", help="leave out all but the first of equal documents")
    add("--shard-tokens", type=whole_number, default=10**8, metavar="N", help="tokens per file (default 100M)")
    add("--end-token", metavar="TEXT", help="the token before each document (default: the tokenizer's)")
    add(
        "--no-special-tokens",
        action="store_true",
        help="leave out the tokens that the tokenizer adds around a text, such as <|begin_of_text|>",
    )
    add(
        "--processes",
        type=whole_number,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="number of processes that encode (default: one per core)",
    )
    add(
        "--text-key",
        default="text",
        metavar="KEY",
        help="the key of the text in JSON lines, or its column in parquet (default text)",
    )
    add(
        "--suffix",
        action="append",
        type=suffixes,
        metavar=".A,.B",
        help="the files to use from folders; none: files without a suffix, all: every file (default: text and sources)",
    )
    add(
        "--encoding",
        type=encoding,
        default="utf-8",
        metavar="NAME",
        help="encoding of text files, such as latin-1 (default utf-8)",
    )
    add("--skip-bad", action="store_true", help="leave out files, of chats the lines, that cannot be used, and name them")
    add("--choices", action="store_true", help='JSON lines are a task, {"ctx": text, "endings": [text, ...], "label": n}')
    add(
        "--documents",
        action="store_true",
        help="write text as documents whose tokens are all targets, to train on it together with chats",
    )
    add("--sequence", type=whole_number, metavar="N", help="most tokens of a document: the deck's model.sequence")
    add("--force", action="store_true", help="replace what an earlier run wrote")
    add_chat_options(parser)
    arguments = parser.parse_args()
    if arguments.shard_tokens >= 2**31:
        parser.error("--shard-tokens has to be below 2^31: a file's header counts its tokens in 32 bits")
    if arguments.choices and (arguments.skip_bad or arguments.encoding != "utf-8"):
        parser.error("--skip-bad and --encoding are for text, not for --choices")
    if arguments.choices and arguments.unique:
        parser.error("--unique is not for --choices")
    check_chat_options(parser, arguments)
    if arguments.training_only and not arguments.tokenizer:
        parser.error("--training-only is for a tokenizer that --tokenizer names")
    if "/" in arguments.name or not arguments.name:
        parser.error("--name is the beginning of a file's name, without a folder")
    return arguments


def add_chat_options(parser):
    add = parser.add_argument_group("chats", "JSON lines with messages, or with prompt and completion").add_argument
    add("--chat", action="store_true", help="the files are chats")
    add("--pairs", action="store_true", help="the files are chats with a chosen and a rejected answer, for preference.loss")
    add("--weight-key", metavar="KEY", help="the key of a line's weight, a number that multiplies the loss of its targets")
    add("--template", metavar="T", help="a chat template: a file, or a name if the tokenizer's folder has several")
    add(
        "--each-turn",
        action="store_true",
        help="make a document of each turn of the assistant, with the conversation before it, in which only this turn is a target",
    )
    add(
        "--long",
        choices=("refuse", "cut", "drop"),
        default="refuse",
        help="longer documents are errors (default), are cut to their first N tokens, or are dropped",
    )
    add("--date", type=datetime.date.fromisoformat, metavar="Y-M-D", help="date for templates that write it (default today)")


def check_chat_options(parser, arguments):
    mine = ("each_turn", "long", "template", "date", "weight_key")
    if arguments.pairs and arguments.weight_key:
        parser.error("--weight-key is not for --pairs: pairs have no weights")
    if arguments.pairs and (arguments.each_turn or arguments.long == "cut"):
        parser.error("--each-turn and --long cut are not for --pairs, which keeps both answers whole")
    if arguments.pairs and arguments.validation == parser.get_default("validation"):
        arguments.validation = 0
    arguments.chat = arguments.chat or arguments.pairs
    given = [name for name in mine if getattr(arguments, name) != parser.get_default(name)]
    if given and not arguments.chat:
        parser.error(f"--{given[0].replace('_', '-')} is for --chat")
    if arguments.sequence and not (arguments.chat or arguments.documents):
        parser.error("--sequence is for --chat and --documents")
    if arguments.documents and (arguments.choices or arguments.shard_tokens != parser.get_default("shard_tokens")):
        parser.error("--choices and --shard-tokens are not for --documents")
    others = ("choices", "documents", "encoding", "vocab", "text_key", "shard_tokens")
    unfit = [name for name in others if getattr(arguments, name) != parser.get_default(name)]
    if arguments.chat and unfit:
        parser.error(f"--{unfit[0].replace('_', '-')} is not for --chat")
    if arguments.long != "refuse" and not arguments.sequence:
        parser.error(f"--long {arguments.long} needs --sequence")
    arguments.date = arguments.date or datetime.date.today()


def check_output(arguments, kept):
    """The files of an earlier run that this one replaces. `kept` is empty if the tokenizer is trained here."""
    folder, name = Path(arguments.output), arguments.name
    own_names = ["_train_[0-9]*.bin", "_val_[0-9]*.bin"]
    if arguments.choices:
        own_names = ["_choices.bin"]
    if arguments.chat or arguments.documents:
        own_names = ["_train.docs", "_val.docs"]
    own = sorted(path for own_name in own_names for path in folder.glob(name + own_name))
    there = folder / "tokenizer.json"
    is_other = there.exists() and (not kept or there.read_bytes() != kept["tokenizer.json"])
    if is_other and (strangers := sorted({*folder.glob("*.bin"), *folder.glob("*.docs")} - set(own))):
        raise InputError(f"{there}: {strangers[0].name} was made with it: use --tokenizer {folder}, or another folder")
    if not arguments.force and (found := own or ([there] if is_other else [])):
        raise InputError(f"{found[0]}: is there already: --force replaces it, and --name gives the files other names")
    return own


def added_tokens(arguments, tokenizer):
    """(ids before, ids after) a text; both are empty with --no-special-tokens."""
    before, after = ([], []) if arguments.no_special_tokens else tokens_around(tokenizer)
    for what, ids in (("before", before), ("after", after)):
        if ids and not arguments.chat:  # a chat template writes its own
            texts = "".join(map(tokenizer.id_to_token, ids))
            print(f"the tokenizer adds {printable(texts)} {what} a text (--no-special-tokens leaves it out)", flush=True)
    return before, after


def keep(arguments, output, kept):
    if arguments.training_only:
        print(f"{printable(arguments.tokenizer)} is not copied: kzero convert copies it with --tokenizer", flush=True)
        return
    for name, data in kept.items():
        output.write(name, data)


def prepare_text(arguments, files, output):
    tokenizer, kept = take_tokenizer(arguments.tokenizer, arguments.training_only) if arguments.tokenizer else (None, {})
    replaced = check_output(arguments, kept)
    began = time.monotonic()
    corpus = Corpus(files, arguments)
    print(*corpus.summary(), sep="\n", flush=True)
    if tokenizer is None:
        text = (text for text, _, _ in corpus.parts(True))
        tokenizer = train_tokenizer(arguments.vocab, arguments.end_token, text, corpus.draw.kept, corpus.count)
        kept = {"tokenizer.json": tokenizer.to_str().encode()}
    end = choose_end_token(tokenizer, kept, arguments.end_token)
    kept.setdefault("tokenizer_config.json", configuration(end))
    keep(arguments, output, kept)
    rules = tokenizer_file(arguments.tokenizer) if arguments.training_only else output.partial("tokenizer.json")
    around = added_tokens(arguments, tokenizer)
    sides, text_bytes = write_text(corpus, output, tokenizer, rules, around, tokenizer.token_to_id(end))
    output.commit(replaced)
    tokens = sum(side.count for side in sides)
    folder = json.dumps(output.folder.as_posix(), ensure_ascii=False)[1:-1]
    print(f"{tokens} tokens, {text_bytes / tokens:.2f} bytes of text each, in {time.monotonic() - began:.1f} s")
    print(*sides_summary(corpus.draw, sides), sep="\n")
    form, files = ("documents", ".docs") if arguments.documents else ("llmc", "_*.bin")
    print(f"for the deck:\n[model]\nvocab = {highest_id(tokenizer) + 1}\n[data]\nformat = \"{form}\"")
    print(f'files = ["{folder}/{arguments.name}_train{files}"]')
    if sides[1].count:
        print(f'validation_files = ["{folder}/{arguments.name}_val{files}"]')


def prepare_choices_files(arguments, files, output):
    tokenizer, kept = take_tokenizer(arguments.tokenizer or output.folder, arguments.training_only)
    replaced = check_output(arguments, kept)
    tokenizer.encode_special_tokens = True
    keep(arguments, output, kept)
    before, _ = added_tokens(arguments, tokenizer)
    count = write_choices(files, tokenizer, before, output, arguments.name)
    output.commit(replaced)
    print(f"{count} examples in {printable(str(output.folder / arguments.name))}_choices.bin")


def prepare_chat_files(arguments, files, output):
    from .chat import write_chats  # needs jinja2, which the other kinds of input do not

    tokenizer, kept = take_tokenizer(arguments.tokenizer or output.folder, arguments.training_only)
    replaced = check_output(arguments, kept)
    keep(arguments, output, kept)
    end = tokenizer.token_to_id(choose_end_token(tokenizer, kept, arguments.end_token))
    around = added_tokens(arguments, tokenizer)
    lines, written = write_chats(arguments, files, output, kept, end, around)
    output.commit(replaced)
    print(*lines, sep="\n")
    for file, documents, tokens in written:
        print(f"  {printable(str(output.folder / file))}: {documents} documents, {tokens} tokens")
    folder = json.dumps(output.folder.as_posix(), ensure_ascii=False)[1:-1]
    form = "pairs" if arguments.pairs else "documents"
    keys = zip(("files", "validation_files"), written[:1] if arguments.pairs else written)
    print(f"for the deck:\n[model]\nvocab = {highest_id(tokenizer) + 1}\n[data]\nformat = \"{form}\"")
    print(*(f'{key} = ["{folder}/{file}"]' for key, (file, _, _) in keys), sep="\n")


def main():
    sys.stdout.reconfigure(errors="backslashreplace")  # names and templates may have characters that the terminal lacks
    arguments = parse_arguments()
    tokenizers_python.find(*(["jinja2"] if arguments.chat else []))
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # from a batch system: leaves nothing behind
    output = None
    try:
        usual = frozenset((".jsonl",)) if arguments.chat else DEFAULT_SUFFIXES
        wanted = frozenset().union(*arguments.suffix) if arguments.suffix else usual
        files, skipped = find_files(arguments.files, wanted)
        print(
            printable(skipped_text(skipped, "skipped ")) + "; --suffix chooses other suffixes\n" if skipped else "",
            end="",
            flush=True,
        )
        output = Output(arguments.output)
        prepare = prepare_choices_files if arguments.choices else prepare_chat_files if arguments.chat else prepare_text
        prepare(arguments, files, output)
    except InputError as error:
        for line in error.args:
            print(f"prepare.py: {printable(line)}", file=sys.stderr)
        return 4
    except OSError as error:
        print(f"prepare.py: {printable(str(error.filename or arguments.output))}: {error.strerror or error}", file=sys.stderr)
        return 4
    except MemoryError:
        print("prepare.py: there is not enough memory; nothing is written", file=sys.stderr)
        return 4
    except KeyboardInterrupt:
        print("prepare.py: interrupted, nothing is written", file=sys.stderr)
        return 130
    finally:
        if output:
            output.discard()
    return 0
