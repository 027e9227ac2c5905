"""What ends an answer belongs to the model: prepare.py --chat writes it where kzero and transformers look for it, into the
generation_config.json next to the tokenizer. A base model ends documents with one token and learns from a chat template to end
answers with another."""

import json

from .documents import InputError, surrogate_problem
from .tokenizer import text_of_token

NAME = "generation_config.json"


def read_object(path):
    """The JSON object in a file, or an empty one if the file does not exist."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: is not a JSON object")
    return value


def ids_in(value, path):
    """The ids of an eos_token_id: a number, a list of numbers, or null."""
    ids = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in ids):
        raise InputError(f"{path}: eos_token_id is {json.dumps(value)[:80]}, but a token or a list of tokens is needed there")
    return ids


def model_end_ids(folder, configuration, tokenizer):
    """The tokens that end a text of the model in a folder: those of the first file that names some."""
    for name in (NAME, "config.json"):
        if ids := ids_in(read_object(folder / name).get("eos_token_id"), folder / name):
            return ids
    text = text_of_token(configuration.get("eos_token"))
    if not text or surrogate_problem(text):
        return []
    one = tokenizer.token_to_id(text)
    return [] if one is None else [one]


def former_end_ids(folder, names):
    """The tokens that end an answer in other document files of a folder than those of these names."""
    if all(path.name in names for path in folder.glob("*.docs")):
        return []
    return ids_in(read_object(folder / NAME).get("eos_token_id"), folder / NAME)


def template_end_ids(tokenizer, special, ending):
    """The special token in the text after an answer. `special`: a pattern for any of them."""
    found = special.search(ending)
    return [tokenizer.token_to_id(found.group())] if found else []


def generation_config(folder, ids):
    """The bytes of the folder's generation_config.json, in which `ids`, without repetition, end a text."""
    ids = list(dict.fromkeys(ids))
    value = {**read_object(folder / NAME), "eos_token_id": ids if len(ids) != 1 else ids[0]}
    return json.dumps(value, indent=2).encode() + b"\n"
