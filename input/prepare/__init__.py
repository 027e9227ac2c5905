"""The modules of input/prepare.py. `command` is its program."""
