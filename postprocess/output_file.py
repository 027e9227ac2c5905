"""Writes a file of results, so that nobody else has it open."""

import os
import secrets
from pathlib import Path


def write(path, data):
    """Replaces the file by a new one, complete from the start. An existing file is not written into: whoever made it could keep it open,
    and it could have other names. Devices and pipes are written to. Raises OSError."""
    path = Path(path)
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with open(fresh, "xb") as file:
            file.write(data)
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
