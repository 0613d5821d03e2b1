"""The command line: a thin door to `emu.cli`. `python run.py --help` says what it can do."""

import sys

from emu.cli import main

if __name__ == "__main__":
    sys.exit(main())
