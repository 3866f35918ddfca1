"""Calls of foreign code: the public functions of a package with numbers to differentiate.

A function is one of the package where it is defined there; what a package shows of others is not drawn.

The numbers are those of the first example in a function's docstring that gives it any. Where there is none, numbers
are drawn, in several shapes, until the function answers with a number. Functions are those of the package's modules,
static methods of its classes, and the METHODS of its instances: those that its modules hold, and those that its
classes make of nothing, or of data.
"""

from __future__ import annotations

import contextlib
import doctest
import functools
import importlib
import inspect
import io
import math
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np

from tests.support.time_limits import TooLongError, is_limited, limited

Function = Callable[..., Any]

SECONDS = 8  # for one plain call, and for one way of differentiating it
LARGEST = 40  # elements of an array that are differentiated
METHODS = ("evaluate", "logpdf", "pdf", "logcdf", "logpmf", "loglike", "loglikeobs")
_LENGTHS = (2, 3, 4, 5, 6, 9, 10, 30)  # of drawn arrays
_RANGES = ((0.5, 2.0), (0.1, 0.9), (15.0, 40.0))
_DATA = np.column_stack([np.ones(20), np.cos(np.arange(20.0))])
_RESPONSES = (np.arange(20) % 3 % 2 * 1.0, np.arange(20) * 7 % 5 * 1.0)  # of two outcomes; counts
_FORBIDDEN = re.compile(
    r"socket\.|subprocess|os\.(remove|rename|mkdir|rmdir|system|exec|fork|kill)|shutil\.|webbrowser"
)


_SET_UP: dict[str, Callable[[Any], None]] = {"psychrolib": lambda package: package.SetUnitSystem(package.SI)}
_CRASHES = ("splev", "splder", "splint")  # SciPy's C code reads beyond drawn knots


class _Row(list[Any]):
    """The elements of an array; the function gets the array."""


@dataclass(frozen=True)
class Call:
    """A function with arguments; `places` lead to the numbers among them."""

    name: str
    function: Function
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    places: tuple[tuple[Any, ...], ...]

    @property
    def start(self) -> list[float]:
        """The numbers."""
        return [at((self.args, self.keywords), place) for place in self.places]

    def of_list(self, numbers: Sequence[Any]) -> Any:
        """Return the same for a list of the numbers."""
        return self(*numbers)

    def __call__(self, *numbers: Any) -> Any:
        """Return one number: a weighted sum of all that the function returns for these numbers."""
        return _sum_of(_numbers(self._answer(numbers)))

    def complex_value(self, numbers: Sequence[Any]) -> complex | None:
        """Return the same of the plain call on complex numbers, None where it takes none."""
        try:
            with _harmless(), np.errstate(all="ignore"):
                return complex(_sum_of(_numbers(self._answer(numbers), of_complex=True)))
        except Exception:  # it compares them, or calls what has no complex numbers
            return None

    def _answer(self, numbers: Sequence[Any]) -> Any:
        arguments: Any = (self.args, self.keywords)
        for place, number in zip(self.places, numbers, strict=True):
            arguments = put(arguments, place, number)
        args, keywords = _with_arrays(arguments)
        return self.function(*args, **keywords)


def calls_of(package: str, only: str = "") -> Iterator[Call]:
    """Yield a call for each public function of a package that takes numbers, if `only` is in its name."""
    seen: set[int] = set()
    sys.addaudithook(_refuse_harm)
    for module in _modules(package):
        names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        for public in names:
            value = getattr(module, public, None)
            if isinstance(value, ModuleType) or id(value) in seen or not _is_of(package, value):
                continue
            seen.add(id(value))
            for name, function in _functions(public, value):
                full = f"{getattr(value, '__module__', module.__name__)}.{name}"
                call = call_of(full, function) or drawn_call(full, function) if only in full else None
                if call is not None:
                    yield call


def call_of(name: str, function: Function) -> Call | None:
    """Return the call of a function in the first example of its docstring that gives it numbers."""
    if not inspect.isfunction(function):
        return None
    met: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def recorder(*args: Any, **keywords: Any) -> Any:
        met.append((args, keywords))
        return function(*args, **keywords)

    names = {**vars(importlib.import_module(function.__module__.partition(".")[0]))}
    names |= {**function.__globals__, function.__name__: recorder}
    try:
        examples = doctest.DocTestParser().get_examples(function.__doc__ or "")
    except ValueError:
        return None
    for example in examples:
        try:
            with _harmless():
                exec(compile(example.source, "<example>", "single"), names)  # an example, as doctest runs it
        except (Exception, TooLongError):  # an example that needs what is not there
            continue
        for args, keywords in met:
            call = _call(name, function, args, keywords)
            if call.places and plain_value(call, call.start) is not None:
                return call
        met.clear()
    return None


def drawn_call(name: str, function: Function) -> Call | None:
    """Return the first call with drawn numbers that answers with a number which depends on them."""
    if name.endswith(_CRASHES):
        return None
    for args, keywords in _guesses(function):
        call = _call(name, function, args, keywords)
        value = plain_value(call, call.start) if call.places else None
        if value is None or not math.isfinite(value) or value != plain_value(call, call.start):
            continue  # or it draws numbers of its own
        if plain_value(call, moved(call)) not in (None, value):
            return call
    return None


def _call(name: str, function: Function, args: Any, keywords: Any) -> Call:
    args, keywords = _with_rows((args, keywords))
    return Call(name, function, args, keywords, tuple(_places((args, keywords))))


def moved(call: Call, by: float = 1e-5) -> list[float]:
    """Return the numbers moved a little, each by an amount of its own: off an `==` or a bound."""
    return [number * (1 + by * math.sqrt(k + 2)) + by * 1e-25 for k, number in enumerate(call.start)]


def plain_value(call: Call, numbers: Sequence[float]) -> float | None:
    """Return the plain call's number, None where it raises or gives none."""
    try:
        with _harmless():
            value = call(*numbers)
        return float(value) if isinstance(value, float | int | np.floating) else None
    except Exception:  # outside of its domain
        return None
    except TooLongError:
        if is_limited():  # the limit of what asks
            raise
        return None


def raises_itself(call: Call, error: Exception) -> bool:
    """Whether the plain call raises an error of that kind, where it is given other numbers."""
    start = call.start
    others = ([0.0] * len(start), [1.0] * len(start), [-number for number in start], start[::-1], moved(call))
    for numbers in others:
        try:
            with _harmless():
                call(*numbers)
        except type(error):
            return True
        except (Exception, TooLongError):
            continue
    return False


# What is called


def _modules(package: str) -> Iterator[ModuleType]:
    whole = importlib.import_module(package)
    _SET_UP.get(package, lambda _: None)(whole)
    yield whole
    for found in pkgutil.walk_packages(getattr(whole, "__path__", []), f"{package}."):
        if ".test" not in found.name and ".conftest" not in found.name:
            with contextlib.suppress(Exception):  # a module that needs what is not installed
                yield importlib.import_module(found.name)


def _is_of(package: str, value: Any) -> bool:
    """Whether a function, a class or an instance is defined in a package: what it only shows is another's to test."""
    return f"{getattr(value, '__module__', type(value).__module__)}.".startswith(f"{package}.")


def _functions(name: str, value: Any) -> Iterator[tuple[str, Function]]:
    """Yield the functions of a function, of a class or of an instance."""
    if inspect.isfunction(value):
        yield name, value
        return
    if inspect.isfunction(python := getattr(getattr(value, "_dispatcher", value), "py_func", None)):
        yield name, functools.wraps(python)(lambda *args, **keywords: value(*args, **keywords))  # one of numba's
        return
    if inspect.isclass(value):
        statics = [key for key, member in vars(value).items() if isinstance(member, staticmethod) and key[0] != "_"]
        for key in statics:
            yield f"{name}.{key}", getattr(value, key)
        wanted = [key for key in METHODS if key not in statics and callable(getattr(value, key, None))]
        for made in _instances(value) if wanted else ():
            yield from ((f"{name}.{key}", _method(made, key)) for key in wanted)
    elif type(value).__module__ != "builtins":
        members = ((key, inspect.getattr_static(value, key, None) and _method(value, key)) for key in METHODS)
        yield from ((f"{name}.{key}", member) for key, member in members if callable(member))


def _method(instance: Any, name: str) -> Function:
    """Return a method that is looked up whenever it is called, as code that uses an instance does."""

    @functools.wraps(getattr(instance, name))
    def call(*args: Any, **keywords: Any) -> Any:
        return getattr(instance, name)(*args, **keywords)

    return call


def _instances(kind: type) -> list[Any]:
    """Return an instance of a class made of nothing, or some made of a response and data that explain it."""
    made: list[Any] = []
    for arguments in ((), *((response, _DATA) for response in _RESPONSES)):
        with contextlib.suppress(Exception, TooLongError), _harmless():
            made.append(kind(*arguments))
            if not arguments:
                break
    return made


# What it is given


def _guesses(function: Function) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield arguments: numbers, or arrays and numbers, with and without those that have defaults."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return
    needed = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)
    further = [p.name for p in parameters if type(p.default) is float and p.kind is not p.POSITIONAL_ONLY]
    rests = range(6) if any(p.kind is p.VAR_POSITIONAL for p in parameters) else range(1)
    for (low, high), rest, some in product(_RANGES, reversed(rests), (further, []) if further else ([],)):
        numbers = [low + (high - low) * (0.618034 * (k + 1) % 1) for k in range(200)]
        keywords = dict(zip(some, numbers[100:], strict=False))
        count = needed + rest
        if count + len(some) > 0:
            yield tuple(numbers[:count]), keywords
        for length in _LENGTHS if count else ():
            yield (_Row(numbers[-length:]), *numbers[: count - 1]), keywords
        if count > 1:
            yield tuple(_Row(numbers[3 * k : 3 * k + 3]) for k in range(count)), keywords


@contextlib.contextmanager
def _harmless() -> Iterator[None]:
    """Run foreign code for a limited time: it prints nothing, writes no file, and asks nothing outside."""
    _guarded.append(True)
    try:
        with contextlib.redirect_stdout(io.StringIO()), limited(SECONDS):
            yield
    finally:
        _guarded.pop()


_guarded: list[bool] = []


def _refuse_harm(event: str, arguments: tuple[Any, ...]) -> None:
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if _guarded and (writes or _FORBIDDEN.match(event)):
        raise PermissionError(event)


# Arguments and results


def _with_rows(value: Any) -> Any:
    """Small arrays of floats become lists whose places can be told."""
    if isinstance(value, dict):
        return {key: _with_rows(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_with_rows, value))
    is_small = type(value) is np.ndarray and value.dtype == np.float64 and value.ndim == 1 and value.size <= LARGEST
    return _Row(value.tolist()) if is_small else value


def _with_arrays(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_arrays(part) for key, part in value.items()}
    if type(value) is _Row:
        return np.array(value) if all(type(part) is float for part in value) else np.stack(value)
    return type(value)(map(_with_arrays, value)) if type(value) in (list, tuple) else value


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where the floats are in lists, tuples and dicts."""
    if type(value) is float and math.isfinite(value):
        yield place
    of_parts = type(value) in (list, tuple, _Row)
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if of_parts else ()
    for key, part in items:
        yield from _places(part, (*place, key))


def at(value: Any, place: tuple[Any, ...]) -> Any:
    """Return one part of a container."""
    for key in place:
        value = value[key]
    return value


def put(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """Return a container with one part replaced."""
    if not place:
        return new
    if isinstance(value, dict):
        return {**value, place[0]: put(value[place[0]], place[1:], new)}
    parts = [put(part, place[1:], new) if k == place[0] else part for k, part in enumerate(value)]
    return type(value)(parts)


def _sum_of(numbers: Iterator[Any]) -> Any:
    parts = list(numbers)
    total = parts[0] * 1.0 if parts else None
    for k, part in enumerate(parts[1:], 1):
        total = total + part * math.sqrt(k + 1)
    return total


def _numbers(value: Any, of_complex: bool = False) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, np.ndarray):
        value = list(value.ravel())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _numbers(part, of_complex)
    elif of_complex and isinstance(value, complex | np.complexfloating):
        yield value
    elif isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool):
        yield value  # whole ones too: where they are counted or rounded, they are traced numbers here
    elif np.iscomplexobj(value):  # a traced one, too
        raise ValueError("not a real number")  # so the function has no value there
    elif not isinstance(value, bool | str | np.bool_ | None):  # another library's numbers
        raise TypeError
