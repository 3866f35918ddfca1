"""`python -m symad.teaching.confusion [PROGRAM ...] [--html FILE]`: the exhibit in a terminal, or one as a page."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from symad.errors import ArgumentError
from symad.teaching.confusion.exhibit import FAMOUS, exhibit


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the famous programs that are named, or all; exit status 0, or 2 with a one-line error.

    >>> main(["no such program"])
    2
    """
    parser = argparse.ArgumentParser(prog="python -m symad.teaching.confusion", description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(FAMOUS)}; by default all")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write the page of one program")
    options = parser.parse_args(arguments)
    try:
        if options.html is None:
            for name in options.programs or FAMOUS:
                print(exhibit(name), end="\n\n", flush=True)
        elif len(options.programs) == 1:
            print(f"written: {exhibit(options.programs[0]).save(options.html)}")
        else:
            raise ArgumentError(f"--html with {len(options.programs)} programs", do="name one")
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except ArgumentError as error:
        print(f"symad: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
