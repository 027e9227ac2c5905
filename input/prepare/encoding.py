"""Encodes documents for prepare.py in several processes, in order."""

import collections
import concurrent.futures
import multiprocessing
import os
import signal
from concurrent.futures.process import BrokenProcessPool

from .documents import InputError
from .patterns import ENDING_AT_LINES, GPT2
from .shards import little_endian, token_array

BATCH = 1 << 20  # characters that a process encodes at a time


def allows_cuts(rules):
    """Whether a tokenizer.json's words always end before a line end that follows a letter or digit, as those of GPT-2 and Llama 3."""
    steps = rules.get("pre_tokenizer") or {}
    steps = steps.get("pretokenizers", [steps])
    last = steps[-1] if steps else {}
    splits = [step.get("pattern", {}).get("Regex", "") for step in steps[:-1] if step.get("type") != "Digits"]
    known = last.get("use_regex", True) if not splits else len(splits) == 1 and splits[0] in (GPT2, *ENDING_AT_LINES)
    return (
        last.get("type") == "ByteLevel"
        and not last.get("add_prefix_space", True)
        and known
        and rules.get("normalizer") in (None, {"type": "NFC"})
        and not any("\n" in token["content"] or token["rstrip"] for token in rules.get("added_tokens") or [])
    )


def batches(parts):
    """Lists of (text, whether it begins a document, side) of one side each, of about BATCH characters."""
    waiting, characters = {}, {}
    for text, is_start, side in parts:
        waiting.setdefault(side, []).append((text, is_start, side))
        characters[side] = characters.get(side, 0) + len(text)
        if characters[side] >= BATCH:
            yield waiting.pop(side)
            characters[side] = 0
    yield from waiting.values()


class Encoder:
    """Encodes text in one process."""

    tokenizer = beginning = width = None

    @classmethod
    def start(cls, path, beginning=(), width=4):
        """`beginning`: the tokens before each document. `width`: bytes of a token."""
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        from tokenizers import Tokenizer

        cls.tokenizer, cls.beginning, cls.width = Tokenizer.from_file(path), beginning, width
        cls.tokenizer.encode_special_tokens = True
        cls.tokenizer.no_truncation()
        cls.tokenizer.no_padding()

    @classmethod
    def ids_of(cls, texts):
        """The ids of each text."""
        try:
            encodings = cls.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except Exception as error:  # the library raises nothing more exact
            raise InputError(f"the tokenizer cannot encode the text: {error}") from error
        return [encoding.ids for encoding in encodings]

    @classmethod
    def encode(cls, batch):
        """(side, tokens as bytes, bytes of text, characters of text)."""
        texts = [text for text, _, _ in batch]
        tokens = token_array(cls.width)
        for (_, is_start, _), ids in zip(batch, cls.ids_of(texts)):
            if is_start:
                tokens.extend(cls.beginning)
            tokens.extend(ids)
        return batch[0][2], little_endian(tokens), sum(len(text.encode()) for text in texts), sum(map(len, texts))


def start_process(encoder, *start):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others
    encoder.start(*start)


def encoded(batches, processes, encoder, *start):
    """encoder.encode() of all batches, in order; at most two batches per process wait. `encoder`: a class, such as Encoder.
    `start`: what its start() needs in each process."""
    if processes == 1:
        encoder.start(*start)
        yield from map(encoder.encode, batches)
        return
    start = encoder, *start
    with concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), start_process, start) as pool:
        waiting = collections.deque()
        try:
            for batch in batches:
                waiting.append(pool.submit(encoder.encode, batch))
                if len(waiting) > 2 * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise InputError("an encoding process was killed, perhaps for lack of memory; try fewer --processes") from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
