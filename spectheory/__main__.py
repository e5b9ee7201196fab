"""``python -m spectheory``."""

import sys

from spectheory.cli import main

if __name__ == "__main__":
    sys.exit(main())
