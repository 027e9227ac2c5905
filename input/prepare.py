"""Makes token files from text. `python3 input/prepare.py --help` describes it; prepare/command.py is the program."""

import sys

from prepare.command import main

if __name__ == "__main__":
    sys.exit(main())
