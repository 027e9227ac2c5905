"""Checks of values in a tokenizer.json, as src/tokenizer/rules.cpp has them."""

import json

from .documents import InputError

MAX_ID = 2_000_000


def is_same(a, b):
    """As JSON, where false is not 0."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(is_same, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def refuse(key, value, why):
    raise InputError(f"{key} is {json.dumps(value)[:80]}, but {why}")


def allow(value, key, *allowed):
    if not any(is_same(value, one) for one in allowed):
        refuse(key, value, f"kzero reads only {' or '.join(map(json.dumps, allowed))} there")


def allow_keys(rules, prefix, *known):
    for key, value in rules.items():
        if key not in known:
            refuse(prefix + key, value, "kzero knows no such rule")


def flag(rules, prefix, key, usual):
    value = rules.get(key)
    if value is not None and not isinstance(value, bool):
        refuse(prefix + key, value, "true or false is needed there")
    return usual if value is None else value


def check_id(value, key):
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_ID:
        refuse(key, value, f"an id is a whole number from 0 to {MAX_ID}")
