"""``python -m spectheory``."""

import sys

from spectheory.command_line.main import main

if __name__ == "__main__":
    sys.exit(main())
