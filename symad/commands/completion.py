"""`symad completion`: shell completion of commands, options and values, by shtab."""

from __future__ import annotations

import argparse
from typing import Any

from symad.commands.names import HELP
from symad.extras import optional

SHELLS = ("bash", "zsh", "fish")


def add_command(commands: Any) -> None:
    """Declare the command and its options."""
    what = HELP["completion"]
    command = commands.add_parser("completion", help=what, description=f"{what.capitalize()}.")
    command.add_argument("shell", choices=SHELLS)
    command.set_defaults(run=run, max_seconds=300.0)


def run(options: argparse.Namespace) -> int:
    """Carry out the command; exit status 0."""
    print(optional("shtab", "shell completion").complete(options.parser, options.shell))
    return 0
