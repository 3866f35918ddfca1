"""`symad completion`: shell completion of commands, options and values, by shtab."""

from __future__ import annotations

import argparse

from symad.extras import optional


def declare_completion(command: argparse.ArgumentParser) -> None:
    """Declare the argument of `symad completion`."""
    command.add_argument("shell", choices=("bash", "zsh", "fish"))


def run_completion(options: argparse.Namespace) -> int:
    """Carry out the command; exit status 0."""
    print(optional("shtab", "shell completion").complete(options.parser, options.shell))
    return 0
