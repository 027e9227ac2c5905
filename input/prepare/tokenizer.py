"""The tokenizer of prepare.py: trains one, or opens a given one with the files next to it."""

import json
import sys
from pathlib import Path

from . import rules
from .documents import InputError, surrogate_problem
from .report import Minutes

TRAINING = 1 << 30  # most characters for training a tokenizer, taken evenly from all files
END_TOKENS = ("<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "</s>")
KEPT = ("tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja")  # copied with a tokenizer.json


def train_tokenizer(vocab, end_token, parts, total, count):
    """A byte-level BPE with the words of GPT-2, as a tokenizers.Tokenizer. `parts` are the `count` parts of the text, which has
    `total` characters."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    if vocab < 257:
        raise InputError(f"--vocab {vocab}: a byte-level BPE has at least 257 tokens: the bytes and the end token")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[end_token or END_TOKENS[0]],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=sys.stderr.isatty(),
    )
    every = -(-total // TRAINING)
    some = (text for number, text in enumerate(parts) if number % every == 0)
    print(f"training a tokenizer of {vocab} tokens" + (f" on one part of the text in {every}" if every > 1 else ""), flush=True)
    with Minutes("training the tokenizer"):
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
            rules.check(json.loads(file.read_bytes()))
    except InputError as error:
        raise InputError(
            f"{file}: kzero generate would refuse it: {error} (--training-only takes it without a copy)"
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    beside = [file.parent / name for name in KEPT]
    return tokenizer, {"tokenizer.json": file.read_bytes(), **{one.name: one.read_bytes() for one in beside if one.is_file()}}


def configuration_of(kept):
    """The object of the tokenizer_config.json among the kept files; empty if there is none."""
    try:
        value = json.loads(kept.get("tokenizer_config.json", b"{}"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"tokenizer_config.json of the tokenizer: is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError("tokenizer_config.json of the tokenizer: is not a JSON object")
    return value


def text_of_token(value):
    """The text of a token in a tokenizer_config.json, which has it plain or in an object; None if there is none."""
    text = value.get("content") if isinstance(value, dict) else value
    return text if isinstance(text, str) else None


def choose_end_token(tokenizer, kept, wanted):
    """The text of the end token: the given one, that of tokenizer_config.json, or a common one."""
    configured = text_of_token(configuration_of(kept).get("eos_token"))
    for text in [wanted] if wanted else [configured, *END_TOKENS]:
        if text and not surrogate_problem(text) and tokenizer.token_to_id(text) is not None:
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


def tokens_around(tokenizer):
    """(ids before, ids after) that the tokenizer's post_processor adds to a text, as Llama 3's adds <|begin_of_text|>."""
    encoding = tokenizer.encode("a")
    is_own = [not mask for mask in encoding.special_tokens_mask]
    if True not in is_own:
        return [], []  # the vocabulary lacks even this letter
    first, end = is_own.index(True), len(is_own) - is_own[::-1].index(True)
    return encoding.ids[:first], encoding.ids[end:]


def document_beginning(end, before, after):
    """The tokens before each document: those after the one before, the end token if it is not among them, those before a text."""
    is_ended = after[-1:] == [end] or before[:1] == [end]
    return [*after, *([] if is_ended else [end]), *before]


def highest_id(tokenizer):
    return max(tokenizer.get_vocab().values(), default=0)
