"""Renders and encodes chats for prepare.py in one process."""

import json
import os
from array import array

from .conversation import Answers
from .document_file import TARGET, count_targets
from .documents import InputError
from .template import Template
from .turns import Turns, special_pattern


def without_post_processor(rules):
    """A tokenizer of these rules, the bytes of a tokenizer.json, that adds no token. Its offsets include the spaces of tokens,
    which a ByteLevel post-processor removes."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(json.dumps({**json.loads(rules), "post_processor": None}))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def stripping_tokens(tokenizer):
    """{id: text} of the added tokens that take white space next to them, as Phi's <|end|>."""
    added = tokenizer.get_added_tokens_decoder()
    return {number: token.content for number, token in added.items() if token.lstrip or token.rstrip}


def own_offsets(encoding, text, stripping):
    """Where each token is in a text, without the white space that it takes."""
    offsets = encoding.offsets
    for at, number in enumerate(encoding.ids if stripping else ()):
        if number in stripping and (begin := text.find(stripping[number], *offsets[at])) >= 0:
            offsets[at] = begin, begin + len(stripping[number])
    return offsets


def mark(ids, offsets, ranges, before=()):
    """(tokens, with the bit TARGET where a token is within a range, number of tokens that are partly in one). The tokens `before`
    come first. The first token is no target."""
    tokens, straddling = array("I", [*before, *ids]), 0
    offsets, at = [(0, 0)] * len(before) + offsets, 0
    for begin, end in sorted(ranges):
        while at < len(tokens) and offsets[at][1] <= begin:
            at += 1
        while at < len(tokens) and offsets[at][0] < end:
            if begin <= offsets[at][0] and offsets[at][1] <= end:
                if at > 0:
                    tokens[at] |= TARGET
            else:
                straddling += 1
            at += 1
    return tokens, straddling


class ChatEncoder:
    tokenizer = before = after = turns = stripping = None

    @classmethod
    def start(cls, rules, end, around, source, each_turn):
        """`rules`: a tokenizer.json's bytes. `end`: the token after a completion. `around`: the tokens before and after a text
        without a template, which writes its own. `source`: of the template, or None."""
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        cls.tokenizer, (cls.before, after) = without_post_processor(rules), around
        cls.stripping = stripping_tokens(cls.tokenizer)
        cls.after = [*after, *([] if after[-1:] == [end] else [end])]
        cls.turns = source and Turns(Template(source), special_pattern(cls.tokenizer), each_turn)

    @classmethod
    def encode(cls, batch):
        """For each (where, Example or the problem of a bad line): (where, its key, its weight, its documents as arrays, tokens that
        are partly in a turn, the problem or None)."""
        results = []
        for where, example in batch:
            try:
                if isinstance(example, str):
                    raise InputError(example)
                weight = 1.0 if isinstance(example, Answers) else example.weight
                results.append((where, example.key(), weight, *cls.documents(example), None))
            except InputError as error:
                results.append((where, 0, 1.0, [], 0, error.args[0]))
        return results

    @classmethod
    def documents(cls, example):
        if isinstance(example, Answers):
            (chosen, some), (rejected, others) = (cls.documents(one) for one in (example.chosen, example.rejected))
            return chosen + rejected, some + others
        if example.messages is None:
            marked = [cls.completion(example.prompt, example.completion)]
        else:
            texts = cls.turns.documents(example)
            marked = [mark(*cls.encoded(text), ranges) for text, ranges in texts]
        for tokens, _ in marked:
            if not count_targets(tokens):
                raise InputError("no token is a target: the assistant's turns have no text of their own")
        return [tokens for tokens, _ in marked], sum(straddling for _, straddling in marked)

    @classmethod
    def completion(cls, prompt, completion):
        """(tokens, number of tokens that are partly in the completion) of a prompt and a completion."""
        ids, offsets = cls.encoded(prompt + completion)
        before = [] if ids[: len(cls.before)] == cls.before else cls.before
        tokens, straddling = mark(ids, offsets, [(len(prompt), len(prompt + completion))], before)
        tokens.extend(token | TARGET for token in cls.after)
        return tokens, straddling

    @classmethod
    def encoded(cls, text):
        """(ids, offsets)"""
        encoding = cls.tokenizer.encode(text, add_special_tokens=False)
        return encoding.ids, own_offsets(encoding, text, cls.stripping)
