"""Writes the fixed texts of a model's chat template. prepare/chat_parts.py is the program."""

import sys

from prepare.chat_parts import main

if __name__ == "__main__":
    sys.exit(main())
