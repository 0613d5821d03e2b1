"""`python -m emu`: the command line."""

import sys

from emu.cli import main

sys.exit(main())
