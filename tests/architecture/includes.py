"""The includes of kzero's files."""

import functools
import os
import re


@functools.cache
def includes(path):
    """The names in a file's include lines, in their order."""
    with open(path) as file:
        return re.findall(r'^#include [<"]([^>"]+)[>"]', file.read(), flags=re.M)


def header_path(name, path, roots):
    """Of a header of kzero that a file includes by name; None for others."""
    places = (os.path.join(root, name) for root in (os.path.dirname(path), *roots))
    return next((os.path.realpath(p) for p in places if os.path.isfile(p)), None)


@functools.cache
def reached(path, *roots):
    """The files that a file includes, itself or through headers of kzero: these by path, others by name."""
    found = set()
    for name in includes(path):
        header = header_path(name, path, roots)
        found |= {header} | reached(header, *roots) if header else {name}
    return frozenset(found)
