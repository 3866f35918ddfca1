"""`symad export`: a function or one of its derivatives as a library for C and other languages."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import symad.tracing.values.containers as containers
from codegen.machine.exports.export import Exported
from symad.classroom.formulas.targets import load_function
from symad.commands.showing import add_accuracy, add_json, add_seconds, print_json
from symad.compiling.native import compile
from symad.errors import ArgumentError
from symad.transforms.first_order import grad, hessian, jacobian, value_and_grad

WHAT: dict[str, Callable[..., Any]] = {
    "value": lambda f: f, "grad": grad, "value_and_grad": value_and_grad, "jacobian": jacobian, "hessian": hessian,
}  # fmt: skip
MATRICES = ("jacobian", "hessian")


def declare_export(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad export`."""
    command.add_argument("target", metavar="FILE.py:FUNCTION")
    command.add_argument("--directory", metavar="DIR", type=Path, required=True, help="where the files go")
    command.add_argument("--of", choices=tuple(WHAT), default="value", help="what is exported (default value)")
    command.add_argument("--sparse", action="store_true", help="only the non-zeros of a jacobian or hessian")
    command.add_argument("--name", help="name of the C function (default FUNCTION, or FUNCTION_hessian and so on)")
    command.add_argument("--cpu", default="host", help="host (default), generic, or a processor that LLVM knows")
    add_accuracy(command)
    add_seconds(command)
    add_json(command)


def run_export(options: argparse.Namespace) -> int:
    """Carry out the command; exit status 0."""
    if options.sparse and options.of not in MATRICES:
        raise ArgumentError(f"--sparse with --of {options.of}", do=f"use it with --of {' or '.join(MATRICES)}")
    function, arguments = load_function(options.target)
    transform = WHAT[options.of]
    wanted = transform(function, sparse=True) if options.sparse else transform(function)
    plain = options.target.rpartition(":")[2]
    name = options.name or (plain if options.of == "value" else f"{plain}_{options.of}")
    leaves, _ = containers.flatten(arguments)
    kernel = compile(wanted, *arguments, accuracy=options.accuracy)
    exported = kernel.export(options.directory, name, cpu=options.cpu, points=[leaves])
    options.progress.end()
    if options.json:
        print_json("export", {"name": name, "files": exported.files})
    else:
        print(report(exported))
    return 0


def report(exported: Exported) -> str:
    """Return the list of written files, and how to build and run the test program."""
    files = {kind: shlex.quote(str(path)) for kind, path in exported.files.items()}
    test = shlex.quote(str(exported.files["test"].with_suffix("")))
    run_test = test if "/" in test else f"./{test}"
    return f"{exported}\n\ntest it:\n  cc {files['test']} {files['object']} -lm -o {test} && {run_test}"
