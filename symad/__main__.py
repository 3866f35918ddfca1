"""`python -m symad`: the command line."""

import sys

from symad.cli import main

if __name__ == "__main__":
    sys.exit(main())
