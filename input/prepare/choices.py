"""Writes tasks with several endings, such as HellaSwag, in the format of llm.c (write_evalfile in dev/data/data_common.py):

- 256 int32: 20240522, 1, number of examples, bytes of the longest example, zeros;
- then a stream of uint16, for each example: 65535, bytes of the example from this number on, its index from 0, the label
  (which ending is right, from 0), the number of endings, the number of tokens of the context and those tokens, and for each
  ending its number of tokens and those tokens. Little-endian.

If a number does not fit, the stream is of uint32, the version is 2, and an example begins with 2^32 - 1: llm.c does not have this.
"""

from .choice_forms import example_of, joint
from .documents import InputError, check_unicode
from .objects import objects
from .shards import header, little_endian, token_array

MAGIC = 20240522
START = {2: 2**16 - 1, 4: 2**32 - 1}  # the largest number, by the bytes of a number
VERSION = {2: 1, 4: 2}


def check_example(context, endings, label, where):
    if not isinstance(context, str) or not context:
        raise InputError(f"{where}: the context has to be a text")
    if not isinstance(endings, list) or len(endings) < 2 or not all(isinstance(ending, str) and ending for ending in endings):
        raise InputError(f"{where}: the endings have to be a list of two or more texts")
    if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label < len(endings):
        raise InputError(f"{where}: the label has to be the number of an ending, from 0 to {len(endings) - 1}")
    for text in (context, *endings):
        check_unicode(text, where)


def tokens_of(tokenizer, context, endings, where):
    """The tokens of the context and of each ending after it."""
    encode = lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    first, texts = encode(context), [joint(context, ending) + ending for ending in endings]
    if not getattr(tokenizer.model, "byte_fallback", False):
        return [first, *map(encode, texts)]
    whole = [encode(context + text) for text in texts]  # alone, an ending would get a second space before it
    for text, tokens in zip(texts, whole):
        if tokens[: len(first)] != first or len(tokens) == len(first):
            raise InputError(
                f"{where}: the context's last token differs before the ending {text[:40]!r}: end the context before it"
            )
    return [first, *(tokens[len(first) :] for tokens in whole)]


def numbers_of(tokenizer, before, index, context, endings, label, where):
    """The numbers of one example after its bytes. `before`: the tokens before its context."""
    first, *others = tokens_of(tokenizer, context, endings, where)
    numbers = token_array(4, (index, label, len(endings)))
    for tokens in ([*before, *first], *others):
        numbers.extend((len(tokens), *tokens))
    return numbers


def width_for(examples):
    """The bytes of a number: 2 if all of these fit, otherwise 4."""
    fits = all(2 * (len(numbers) + 2) < START[2] and max(numbers) < START[2] for numbers in examples)
    return 2 if fits and len(examples) <= START[2] else 4


def write_choices(files, tokenizer, before, output, name):
    """Writes NAME_choices.bin, with the tokens `before` before each context; returns the number of examples."""
    examples = []
    for path in files:
        for where, value in objects(path):
            if isinstance(value, InputError):
                raise InputError(f"{where}: {value}")
            context, endings, label = example_of(value, where)
            check_example(context, endings, label, where)
            examples.append(numbers_of(tokenizer, before, len(examples), context, endings, label, where))
    if not examples:
        raise InputError(f"{', '.join(map(str, files))}: there is no example")
    width, longest = width_for(examples), max(len(numbers) + 2 for numbers in examples)
    stream = token_array(width)
    for numbers in examples:
        stream.extend((START[width], width * (len(numbers) + 2), *numbers))
    data = header(MAGIC, VERSION[width], len(examples), width * longest) + little_endian(stream)
    output.write(f"{name}_choices.bin", data)
    return len(examples)
