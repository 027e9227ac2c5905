"""Writes tasks with several endings, such as HellaSwag, in the format of llm.c (write_evalfile in dev/data/data_common.py):

- 256 int32: 20240522, 1, number of examples, bytes of the longest example, zeros;
- then a stream of uint16, for each example: 65535, bytes of the example from this number on, its index from 0, the label
  (which ending is right, from 0), the number of endings, the number of tokens of the context and those tokens, and for each
  ending its number of tokens and those tokens. Each ending is encoded with a space before it. Little-endian.
"""

from prepare_documents import InputError, check_unicode
from prepare_objects import objects
from prepare_shards import header, little_endian, token_array

MAGIC, VERSION, START = 20240522, 1, 65535


def read_example(value, where):
    """(context, endings, label) of an object {"ctx": text, "endings": [text, ...], "label": number}."""
    context, endings, label = (value.get(key) for key in ("ctx", "endings", "label"))
    if not isinstance(context, str) or not context:
        raise InputError(f"{where}: ctx has to be a text")
    if not isinstance(endings, list) or len(endings) < 2 or not all(isinstance(ending, str) for ending in endings):
        raise InputError(f"{where}: endings has to be a list of two or more texts")
    if isinstance(label, str) and label.isascii() and label.isdigit():
        label = int(label)  # as in the data set's own files
    if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label < len(endings):
        raise InputError(f"{where}: label has to be the number of an ending, from 0 to {len(endings) - 1}")
    for text in (context, *endings):
        check_unicode(text, where)
    return context, endings, label


def stream_of(tokenizer, before, index, context, endings, label, where):
    """The numbers of one example. `before`: the tokens before its context."""
    tokens = [*before, *tokenizer.encode(context, add_special_tokens=False).ids]
    stream = [START, 0, index, label, len(endings), len(tokens), *tokens]
    for ending in endings:
        tokens = tokenizer.encode(" " + ending, add_special_tokens=False).ids
        stream += [len(tokens), *tokens]
    stream[1] = 2 * len(stream)
    if stream[1] >= START:
        raise InputError(f"{where}: takes {stream[1]} bytes, but the format has room for {START - 1} an example")
    if max(stream[5:]) >= START:
        raise InputError(f"{where}: token {max(stream[5:])} does not fit: the format has room for ids below {START}")
    return stream


def write_choices(files, tokenizer, before, output, name):
    """Writes NAME_choices.bin, with the tokens `before` before each context; returns the number of examples."""
    numbers, longest, count = token_array(2), 0, 0
    for path in files:
        for where, value in objects(path):
            if isinstance(value, InputError):
                raise InputError(f"{where}: {value}")
            if count > START:
                raise InputError(f"{where}: the format has room for {START + 1} examples")
            stream = stream_of(tokenizer, before, count, *read_example(value, where), where)
            numbers.extend(stream)
            longest, count = max(longest, stream[1]), count + 1
    if not count:
        raise InputError(f"{', '.join(map(str, files))}: there is no example")
    output.write(f"{name}_choices.bin", header(MAGIC, VERSION, count, longest) + little_endian(numbers))
    return count
