"""The command line: `symad hessian file.py:function`, `symad export file.py:function`, `symad cache`."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codegen.storage import sealed
from symad.commands import cache as cache_command
from symad.commands import export as export_command
from symad.commands import hessian as hessian_command
from symad.commands.loading import load_function
from symad.errors import ArgumentError, WorkbenchError
from symad.limits import time_limit

MODES = ("auto", "edge", "dyadic", "fwd-rev", "rev-rev", "rev-fwd", "fwd-fwd")
ACCURACY = ("strict", "fast")
EMIT = ("llvm", "asm", "let", "latex")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; exit status 0, or 2 with a one-line error on standard error.

    >>> main(["hessian", "nowhere.py:f"])
    2
    """
    options = _parser().parse_args(arguments)
    try:
        with time_limit(options.max_seconds, f"symad {options.command}"):
            status: int = options.run(options)
            sys.stdout.flush()
            return status
    except WorkbenchError as error:
        print(f"symad: error: {error}", file=sys.stderr)
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        place = _user_place(error)
        if place is None:
            raise  # a defect of symad: the traceback is wanted
        print(f"symad: error: {place}: {type(error).__name__}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("symad: interrupted", file=sys.stderr)
    return 2


def _user_place(error: Exception) -> str | None:
    """Return file:line when an exception was raised by the user's code, None when by symad itself."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    inside = Path(frame.filename).is_relative_to(Path(__file__).parent)
    return None if inside else f"{frame.filename}:{frame.lineno}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="symad", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_hessian(commands)
    export_command.add_command(commands)
    command = commands.add_parser(
        "cache",
        help="show or clear the disk cache of machine code",
        description="Show the entries of the disk cache of machine code, the most recently used first: the folder that "
        "SYMAD_CACHE names, or else symad in XDG_CACHE_HOME or ~/.cache.",
    )
    command.add_argument("--folder", metavar="FOLDER", help="look at the cache in this folder")
    action = command.add_mutually_exclusive_group()
    action.add_argument("--clear", action="store_true", help="remove all entries")
    action.add_argument("--path", action="store_true", help="print the folder and nothing else")
    command.set_defaults(run=_cache, max_seconds=300.0)
    return parser


def _add_hessian(commands: Any) -> None:
    command = commands.add_parser(
        "hessian",
        help="trace, differentiate, compile and check the Hessian of a scalar function",
        description="Trace FUNCTION at the example point its file gives (argument defaults or example_args), take its "
        "Hessian in the first argument, compile it, and check every entry against 50 digits.",
    )
    command.add_argument("target", metavar="FILE.py:FUNCTION")
    command.add_argument("--mode", choices=MODES, default="auto", help="how the two derivatives are taken")
    command.add_argument("--sparse", action="store_true", help="print the packed non-zeros instead of the matrix")
    command.add_argument("--fast", action="store_true", help="compile quickly, run slower")
    command.add_argument(
        "--accuracy", choices=ACCURACY, default="strict", help="fast: fewer operations, other rounding"
    )
    command.add_argument("--emit", choices=EMIT, help="print the kernel or its let form after the report")
    command.add_argument(
        "--output", metavar="FILE", type=Path, help="write what --emit gives, or the matrix, to a file"
    )
    command.add_argument("--max-seconds", type=float, default=300.0, help="give up after this time (default 300)")
    command.set_defaults(run=_hessian)


def _hessian(options: argparse.Namespace) -> int:
    function, arguments = load_function(options.target)
    found = hessian_command.study(
        function,
        arguments,
        name=options.target.rpartition(":")[2],
        mode=options.mode,
        tier="fast" if options.fast else "default",
        accuracy=options.accuracy,
        progress=hessian_command.show_progress,
    )
    hessian_command.show_progress("")
    print(hessian_command.report(found))
    text = (
        hessian_command.emitted(found, options.emit) if options.emit else hessian_command.values(found, options.sparse)
    )
    if options.output is not None:
        write_atomically(options.output, text)
        print(f"\nwritten: {options.output}")
    elif options.emit or options.sparse:
        print("\n" + text)
    return 0


def _cache(options: argparse.Namespace) -> int:
    cache = cache_command.cache_of(options.folder)
    if options.path:
        print(cache.folder)
    else:
        print(cache_command.clear(cache) if options.clear else cache_command.report(cache))
    return 0


def write_atomically(path: Path, text: str) -> None:
    """Write a text file completely or not at all; ArgumentError when the folder cannot be written."""
    try:
        sealed.write_atomically(path, text.encode("utf-8"))
    except OSError as error:
        raise ArgumentError(f"cannot write {str(path)!r}", why=str(error), do="choose another --output") from error


if __name__ == "__main__":
    sys.exit(main())
