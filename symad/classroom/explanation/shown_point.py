"""The point at which a trace is shown, in the form in which the function takes its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import symad.tracing.values.containers as containers
from symad.classroom.formulas.given import Given, given
from symad.classroom.formulas.targets import formula_at
from symad.errors import ArgumentError
from symad.tracing.calling.function_names import argument_names, check_call
from symad.tracing.calling.user_place import refusal

_FORMS = "give numbers, lists or arrays as the function takes them, or {name: number}"


def formula_at_point(f: Any, args: Sequence[Any], at: Any) -> tuple[Given, Any]:
    """Return a formula as a function of one argument, and that argument at the point: a number or a vector.

    >>> formula_at_point("x*y", (), {"x": 2, "y": 5})[1]
    array([2., 5.])
    """
    variables = args[0] if args else list(at) if isinstance(at, Mapping) else formula_at(str(f), {})[1]
    variables = list(variables) if isinstance(variables, list | tuple | Mapping) else [variables]
    formula = given(f, variables if len(variables) > 1 else variables[0])
    numbers = np.array(arguments_at(list(map(str, formula.symbols)), formula.symbols, at))
    return formula, numbers if np.shape(formula.argument) else numbers[0]


def arguments_at(f: Any, args: Sequence[Any], at: Any) -> tuple[Any, ...]:
    """Return the arguments of a function, or of names, at a point with the shapes of `args`, where there are some.

    >>> arguments_at(lambda x, y: x, (1.0, 1.0), {"y": 5, "x": 2}), arguments_at(lambda x: x, (), [2, 5])
    ((2.0, 5.0), (array([2., 5.]),))
    """
    if isinstance(at, list) and not args:
        try:
            check_call(f, (at,))
        except ArgumentError:  # it takes more than one
            at = tuple(at)
    count = len(f) if isinstance(f, list) else len(args) or (len(at) if isinstance(at, Mapping | tuple) else 1)
    names: list[str] = f if isinstance(f, list) else argument_names(f, count)
    known = {str(key): value for key, value in at.items()} if isinstance(at, Mapping) else {}
    count = count if args or isinstance(at, tuple) or isinstance(f, list) or known.keys() & set(names) else 1
    if known.keys() & set(names):
        if wrong := sorted(known.keys() ^ set(names)):
            why = f"there is no {'number for' if wrong[0] in names else 'variable'} {wrong[0]}"
            raise refusal(f"at={at!r}", why, f"give numbers for {', '.join(names)}")
        parts = [known[name] for name in names]
    else:
        parts = list(at) if isinstance(at, list | tuple | np.ndarray) and (count > 1 or isinstance(at, tuple)) else [at]
    names = names[:count]
    if len(parts) != count:
        raise refusal(f"at={at!r}", f"{len(names)} arguments are asked for: {', '.join(names)}", _FORMS)
    return tuple(_numbers(*those) for those in zip(parts, args or (None,) * count, names, strict=True))


def _numbers(part: Any, arg: Any, name: str) -> Any:
    """Return an argument with floats in it; a list of numbers is a vector. ArgumentError for another shape."""
    try:
        part = np.array(part, dtype=float) if isinstance(part, list) else part
        leaves, structure = containers.flatten(part)
        numbers = [np.asarray(leaf, dtype=float) for leaf in leaves]
    except (TypeError, ValueError):
        numbers = []
    if not numbers or not all(number.size and np.all(np.isfinite(number)) for number in numbers):
        raise refusal(f"at: {name} = {part!r}", "a point has finite numbers, in rows of equal length", _FORMS)
    expected = [np.shape(arg)] if isinstance(arg, list) else list(map(containers.shape_of, containers.flatten(arg)[0]))
    if arg is not None and expected != [number.shape for number in numbers]:
        raise refusal(f"at: {name} = {part!r}", f"the argument that was given has shape {expected[0]}", _FORMS)
    return containers.unflatten(structure, [number if number.ndim else float(number) for number in numbers])
