"""Makes token files from text: trains a tokenizer or uses a given one, encodes with all cores, and writes llm.c's shards.

    python3 input/prepare.py FILE|FOLDER... -o DATA                         # trains a byte-level BPE of 8192 tokens
    python3 input/prepare.py corpus/ -o DATA --vocab 32000 --validation 0.005
    python3 input/prepare.py more.jsonl.gz -o DATA --name more --tokenizer DATA
    python3 input/prepare.py hellaswag_val.jsonl -o DATA --choices           # a task with several endings, for kzero evaluate

Writes NAME_train_000000.bin and following, NAME_val_000000.bin and following, tokenizer.json and tokenizer_config.json. Prints the
lines for the deck. Reads text, JSON lines and parquet. A folder means all such files in it, program sources included; skipped files
are counted. The end token comes before each document, as in llm.c. The text of a special token within a document stays text.
The files do not depend on the number of processes. See docs/data.md.
"""

import argparse
import codecs
import json
import os
import sys
import time
from pathlib import Path

import prepare_choices
import prepare_documents
import prepare_files
import prepare_rules
import tokenizers_python
from prepare_documents import EncodingError, InputError, MissingModule
from prepare_encoding import BATCH, allows_cuts, divided, encoded
from prepare_files import printable
from prepare_shards import Output, Shards

TRAINING = 1 << 30  # most characters for training a tokenizer, taken evenly from all files
MOST_PROBLEMS = 20  # most problems that are shown
END_TOKENS = ("<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "</s>")


class Progress:
    """A line on a terminal that shows the progress."""

    def __init__(self, what, total=0):
        self.what, self.total, self.done, self.tokens = what, total, 0, 0
        self.begin = self.shown = time.monotonic()

    def add(self, characters, tokens=0):
        self.done, self.tokens = self.done + characters, self.tokens + tokens
        now = time.monotonic()
        if now - self.shown > 0.5 and sys.stderr.isatty():
            self.shown = now
            rate = self.done / (now - self.begin)
            text = f"{self.done / 1e6:.0f} M characters, {rate / 1e6:.1f} M/s"
            if self.total:
                left = int((self.total - self.done) / rate)
                text = f"{100 * self.done // self.total} %, {text}, {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"
            print(f"\r{self.what}: {text}\x1b[K", end="", file=sys.stderr, flush=True)

    def end(self):
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


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
    add("files", nargs="+", metavar="FILE", help="text, JSON lines or parquet, or a folder of such files")
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
        help="fraction of the text, its last documents, that is kept for validation, up to 0.5 (default 0.01)",
    )
    add("--shard-tokens", type=whole_number, default=10**8, metavar="N", help="tokens per file (default 100M)")
    add("--end-token", metavar="TEXT", help="the token before each document (default: the tokenizer's)")
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
        type=prepare_files.suffixes,
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
    add("--skip-bad", action="store_true", help="leave out files that cannot be read, and name them")
    add("--choices", action="store_true", help='JSON lines are a task, {"ctx": text, "endings": [text, ...], "label": n}')
    add("--force", action="store_true", help="replace what an earlier run wrote")
    arguments = parser.parse_args()
    if arguments.shard_tokens >= 2**31:
        parser.error("--shard-tokens has to be below 2^31: a file's header counts its tokens in 32 bits")
    if arguments.choices and (arguments.skip_bad or arguments.encoding != "utf-8"):
        parser.error("--skip-bad and --encoding are for text, not for --choices")
    if arguments.training_only and not arguments.tokenizer:
        parser.error("--training-only is for a tokenizer that --tokenizer names")
    if "/" in arguments.name or not arguments.name:
        parser.error("--name is the beginning of a file's name, without a folder")
    return arguments


def parts_of(path, arguments, can_cut):
    return prepare_documents.parts(path, arguments.text_key, can_cut, arguments.encoding)


def measure(files, arguments):
    """(files that can be read, characters, documents, characters before the last document, parts) of all files."""
    progress = Progress("reading")
    good, problems = [], []
    total, documents, last, parts = 0, 0, 0, 0
    for path in files:
        before = total, documents, last, parts
        try:
            for text, is_start in parts_of(path, arguments, True):
                if is_start:
                    documents, last = documents + 1, total
                total, parts = total + len(text), parts + 1
                progress.add(len(text))
            good.append(path)
        except MissingModule:
            raise
        except InputError as error:
            problems.append(error)
            total, documents, last, parts = before
    progress.end()
    report_bad(problems, arguments)
    if total == 0:
        raise InputError(f"{', '.join(map(str, files[:3]))}{' ...' if len(files) > 3 else ''}: there is no text")
    return good, total, documents, last, parts


def report_bad(problems, arguments):
    """Raises InputError with the problem of each bad file and what to do, or prints which files are left out."""
    lines = [error.args[0] for error in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        lines.append(f"and {len(problems) - MOST_PROBLEMS} more files")
    if problems and not arguments.skip_bad:
        way_out = "--skip-bad leaves out such files"
        if any(isinstance(error, EncodingError) for error in problems):
            way_out += ", --encoding NAME reads another encoding"
        lines[-1] += f" ({way_out})"
        raise InputError(*lines)
    for line in lines:
        print(f"left out: {printable(line)}", flush=True)


def train_tokenizer(arguments, files, total, count):
    """A byte-level BPE with the words of GPT-2, as a tokenizers.Tokenizer. The text has `total` characters in `count` parts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    if arguments.vocab < 257:
        raise InputError(f"--vocab {arguments.vocab}: a byte-level BPE has at least 257 tokens: the bytes and the end token")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=arguments.vocab,
        special_tokens=[arguments.end_token or END_TOKENS[0]],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=sys.stderr.isatty(),
    )
    every = -(-total // TRAINING)
    parts = (text for path in files for text, _ in parts_of(path, arguments, True))
    some = (text for number, text in enumerate(parts) if number % every == 0)
    print(
        f"training a tokenizer of {arguments.vocab} tokens" + (f" on one part of the text in {every}" if every > 1 else ""),
        flush=True,
    )
    tokenizer.train_from_iterator(some, trainer, -(-count // every))
    return tokenizer


def tokenizer_file(path):
    return Path(path) / "tokenizer.json" if Path(path).is_dir() else Path(path)


def take_tokenizer(path, training_only):
    """(the tokenizer, its files by name) of a tokenizer.json or a folder."""
    from tokenizers import Tokenizer

    file = tokenizer_file(path)
    if not file.is_file():
        raise InputError(f"{file}: there is no such file (--tokenizer)")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing more exact
        raise InputError(f"{file}: {error}") from error
    try:
        if not training_only:
            prepare_rules.check(json.loads(file.read_bytes()))
    except InputError as error:
        raise InputError(
            f"{file}: kzero generate would refuse it: {error} (--training-only takes it without a copy)"
        ) from error
    beside = [file.parent / name for name in ("tokenizer_config.json", "special_tokens_map.json")]
    return tokenizer, {"tokenizer.json": file.read_bytes(), **{one.name: one.read_bytes() for one in beside if one.is_file()}}


def choose_end_token(tokenizer, kept, wanted):
    """The text of the end token: the given one, that of tokenizer_config.json, or a common one."""
    configured = json.loads(kept.get("tokenizer_config.json", b"{}")).get("eos_token")
    if isinstance(configured, dict):
        configured = configured.get("content")
    for text in [wanted] if wanted else [configured, *END_TOKENS]:
        if text and tokenizer.token_to_id(text) is not None:
            return text
    raise InputError(
        f"the tokenizer has no token {wanted!r}"
        if wanted
        else f"the tokenizer has none of {', '.join(END_TOKENS)}: name the token between documents with --end-token"
    )


def configuration(end_token):
    """A tokenizer_config.json by which transformers opens the tokenizer."""
    return (
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": end_token,
                "eos_token": end_token,
                "clean_up_tokenization_spaces": False,
                "model_max_length": 10**30,
            },
            indent=2,
        ).encode()
        + b"\n"
    )


def check_output(arguments, kept):
    """The files of an earlier run that this one replaces. `kept` is empty if the tokenizer is trained here."""
    folder, name = Path(arguments.output), arguments.name
    own = sorted(
        [*folder.glob(f"{name}_choices.bin")]
        if arguments.choices
        else [*folder.glob(f"{name}_train_[0-9]*.bin"), *folder.glob(f"{name}_val_[0-9]*.bin")]
    )
    there = folder / "tokenizer.json"
    is_other = there.exists() and (not kept or there.read_bytes() != kept["tokenizer.json"])
    if is_other and (strangers := sorted(set(folder.glob("*.bin")) - set(own))):
        raise InputError(f"{there}: {strangers[0].name} was made with it: use --tokenizer {folder}, or another folder")
    if not arguments.force and (found := own or ([there] if is_other else [])):
        raise InputError(f"{found[0]}: is there already: --force replaces it, and --name gives the files other names")
    return own


def write_shards(arguments, output, files, tokenizer, end, total, limits):
    """Encodes all files; returns the shards of training and of validation, and the bytes of text in both."""
    rules = tokenizer_file(arguments.tokenizer) if arguments.training_only else output.partial("tokenizer.json")
    width = 2 if highest_id(tokenizer) < 2**16 else 4
    shards = [Shards(output, f"{arguments.name}_{part}", width, arguments.shard_tokens) for part in ("train", "val")]
    can_cut = allows_cuts(json.loads(rules.read_bytes()))
    progress, text_bytes = Progress("encoding", total), 0
    parts = (part for path in files for part in parts_of(path, arguments, can_cut))
    processes = min(arguments.processes, -(-total // BATCH))
    results = encoded(divided(parts, *limits), processes, str(rules), end, width)
    for is_validation, tokens, size, characters in results:
        shards[is_validation].write(tokens)
        text_bytes += size
        progress.add(characters)
    for part in shards:
        part.finish()
    progress.end()
    return shards, text_bytes


def highest_id(tokenizer):
    return max(tokenizer.get_vocab().values())


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
    files, total, documents, last, parts = measure(files, arguments)
    print(f"{len(files)} files, {documents} documents, {total / 1e6:.2f} million characters", flush=True)
    if tokenizer is None:
        tokenizer = train_tokenizer(arguments, files, total, parts)
        kept = {"tokenizer.json": tokenizer.to_str().encode()}
    end = choose_end_token(tokenizer, kept, arguments.end_token)
    kept.setdefault("tokenizer_config.json", configuration(end))
    keep(arguments, output, kept)
    limit = total - int(total * arguments.validation)
    shards, text_bytes = write_shards(
        arguments, output, files, tokenizer, tokenizer.token_to_id(end), total, (limit, last < limit < total)
    )
    output.commit(replaced)
    tokens = sum(part.count for part in shards)
    folder = json.dumps(output.folder.as_posix(), ensure_ascii=False)[1:-1]
    print(
        f"{tokens} tokens, {text_bytes / tokens:.2f} bytes of text each, in {time.monotonic() - began:.1f} s\n"
        f"  training    {shards[0].count} tokens, {shards[0].files} files\n"
        f"  validation  {shards[1].count} tokens, {shards[1].files} files\n"
        f"for the deck:\n[model]\nvocab = {highest_id(tokenizer) + 1}\n[data]\nformat = \"llmc\"\n"
        f'files = ["{folder}/{arguments.name}_train_*.bin"]'
    )
    if shards[1].count:
        print(f'validation_files = ["{folder}/{arguments.name}_val_*.bin"]')


def prepare_choices_files(arguments, files, output):
    tokenizer, kept = take_tokenizer(arguments.tokenizer or output.folder, arguments.training_only)
    replaced = check_output(arguments, kept)
    tokenizer.encode_special_tokens = True
    keep(arguments, output, kept)
    count = prepare_choices.write_choices(files, tokenizer, output, arguments.name)
    output.commit(replaced)
    print(f"{count} examples in {printable(str(output.folder / arguments.name))}_choices.bin")


def main():
    arguments = parse_arguments()
    tokenizers_python.find()
    output = None
    try:
        wanted = frozenset().union(*arguments.suffix) if arguments.suffix else prepare_files.USUAL
        files, skipped = prepare_files.find_files(arguments.files, wanted)
        print(
            printable(prepare_files.skipped_text(skipped, "skipped ")) + "; --suffix names what to take\n" if skipped else "",
            end="",
            flush=True,
        )
        output = Output(arguments.output)
        (prepare_choices_files if arguments.choices else prepare_text)(arguments, files, output)
    except InputError as error:
        for line in error.args:
            print(f"prepare.py: {printable(line)}", file=sys.stderr)
        return 4
    except OSError as error:
        print(f"prepare.py: {printable(str(error.filename or arguments.output))}: {error.strerror or error}", file=sys.stderr)
        return 4
    except KeyboardInterrupt:
        print("prepare.py: interrupted, nothing is written", file=sys.stderr)
        return 130
    finally:
        if output:
            output.discard()
    return 0


if __name__ == "__main__":
    sys.exit(main())
