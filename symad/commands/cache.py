"""`symad cache`: show, clear or warm the disk cache of machine code."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from rich.filesize import decimal

from codegen.engine import check_processor
from codegen.machine.storage.cache import Cache, CacheEntry, chosen
from codegen.visible import visible
from symad.commands.showing import add_json, print_json
from symad.display.document import Table
from symad.display.terminal import plain
from symad.doors.compiled_problem import CompiledProblem, load
from symad.errors import ArgumentError

_UNITS = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def declare_cache(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad cache`."""
    command.add_argument("--folder", metavar="FOLDER", help="look at the cache in this folder")
    action = command.add_mutually_exclusive_group()
    action.add_argument("--clear", action="store_true", help="remove all entries")
    what = "compile saved kernels (files) and problems (folders) for this processor"
    action.add_argument("--warm", metavar="FILE", nargs="+", help=what)
    action.add_argument("--path", action="store_true", help="print the folder and nothing else")
    what = "with --warm: refuse to run on another processor than this"
    command.add_argument("--cpu", metavar="NAME", default="host", help=what)
    add_json(command)


def run_cache(options: argparse.Namespace) -> int:
    """Carry out the command; exit status 0."""
    if (cache := chosen(True if options.folder is None else options.folder)) is None:
        raise ArgumentError("no folder", do="name one")
    if options.cpu != "host" and not options.warm:
        raise ArgumentError("--cpu without --warm", do="give the files of kernels")
    if options.warm:
        print(visible(warm(cache, options.warm, options.cpu)))
    elif options.json and not options.clear:
        print_json("cache", {"folder": cache.folder, "limit": cache.limit, "entries": cache.entries()[::-1]})
    elif options.path:
        print(cache.folder)
    else:
        print(clear(cache) if options.clear else report(cache))
    return 0


def clear(cache: Cache) -> str:
    """Remove all entries and return a report; ArgumentError if that is not allowed."""
    try:
        return f"{cache.clear()} entries removed from {cache.folder}"
    except OSError as error:
        raise ArgumentError(f"cannot clear {cache.folder}", why=str(error.strerror)) from error


def warm(cache: Cache, files: Sequence[str], cpu: str) -> str:
    """Compile the kernels of files into a cache; return a line for each; ArgumentError on another processor."""
    own = check_processor("host")
    if check_processor(cpu) != own:
        raise ArgumentError(
            f"--cpu {cpu} on {own}", why="machine code is made where it is to run, for all that a processor has",
            do="run the command on a machine of that kind: the first task of a job array",
        )  # fmt: skip
    lines = []
    for file in files:
        loaded = load(file, cache=cache.folder)
        for kernel in loaded.compiled_kernels() if isinstance(loaded, CompiledProblem) else [loaded]:
            kernel.wait()
            state = "was there" if kernel.stats.cached else "compiled"
            lines.append(f"{file}: {kernel.program.name} {state} for {own}")
    return "\n".join(lines)


def report(cache: Cache) -> str:
    """Return the entries as a table, the most recently used first, under a line with the sums."""
    entries = cache.entries()[::-1]
    total = sum(entry.size for entry in entries)
    state = "used when cache= or SYMAD_CACHE asks for it" if chosen() is None else "in use: SYMAD_CACHE is set"
    sums = f"{cache.folder}: {len(entries)} entries, {decimal(total)} of at most {decimal(cache.limit)} ({state})"
    table = Table(("kernel", "size", "made", "last used", "hits"), tuple(map(_row, entries)), "lrrrr")
    return f"{sums}\n{plain((table,))}" if entries else sums


def _row(entry: CacheEntry) -> tuple[str, ...]:
    name, now = entry.name or "(damaged, made anew when it is needed)", time.time()
    return (name, decimal(entry.size), _ago(now - entry.made), _ago(now - entry.used), str(entry.hits))


def _ago(seconds: float) -> str:
    """Return a time span in its largest unit.

    >>> _ago(0.2), _ago(7300.0)
    ('0 s ago', '2 h ago')
    """
    length, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    return f"{max(int(seconds / length), 0)} {unit} ago"
