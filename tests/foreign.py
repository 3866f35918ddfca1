"""Foreign code: every public function of installed packages that takes numbers, differentiated and compared.

python -m tests.foreign chemicals fluids [--only NAME] [--all]

The arguments are those of the examples in the docstrings. Every number among them is differentiated: the value is
compared with the plain call, the gradient with extrapolated central differences of plain calls, interpreted and as a
kernel. Each function is right, refused (by an error of ours), slow or wrong; `crash` is an error that is not ours. At a
`switch` (an `==`, a bound that is met exactly) the derivative is that of the branch that Python takes; `rounding` is
what its own program, evaluated at 50 digits, contradicts.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import importlib
import inspect
import io
import math
import pkgutil
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import FrameType, ModuleType
from typing import Any

import numpy as np

import symad as sa
from symad.errors import WorkbenchError

Function = Callable[..., Any]

SECONDS = 8  # for one way of differentiating one function
HALF = 2.0**26  # in units of the last place
CLOSE = 1e-6  # relative: differences have no more digits
STEPS = 2.0 ** -np.arange(4.0, 22.0)  # of differences, relative


@dataclass(frozen=True)
class Call:
    """A function with the arguments of one example; `places` lead to the numbers among them."""

    name: str
    function: Function
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    places: tuple[tuple[Any, ...], ...]

    @property
    def start(self) -> list[float]:
        """The numbers."""
        return [_at((self.args, self.keywords), place) for place in self.places]

    def of_list(self, numbers: Sequence[Any]) -> Any:
        """Return the same for a list of the numbers."""
        return self(*numbers)

    def __call__(self, *numbers: Any) -> Any:
        """Return one number: a weighted sum of all that the function returns for these numbers."""
        args, keywords = self.args, self.keywords
        for place, number in zip(self.places, numbers, strict=True):
            args, keywords = _put((args, keywords), place, number)
        parts = list(_numbers(self.function(*args, **keywords)))
        total = parts[0] * 1.0 if parts else None
        for k, part in enumerate(parts[1:], 1):
            total = total + part * math.sqrt(k + 1)
        return total


@dataclass(frozen=True)
class Outcome:
    """What became of one way of differentiating: right, refused, wrong, crash or slow; and why."""

    kind: str
    text: str = ""


def calls_of(package: str) -> Iterator[Call]:
    """Yield a call for each public function of a package whose docstring has an example that takes numbers."""
    seen: set[int] = set()
    for module in _modules(package):
        names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        for name in names:
            function = getattr(module, name, None)
            if not inspect.isfunction(function) or id(function) in seen:
                continue
            seen.add(id(function))
            call = call_of(f"{function.__module__}.{name}", function)
            if call is not None:
                yield call


def call_of(name: str, function: Function) -> Call | None:
    """Return the call of a function in the first example of its docstring that gives it numbers."""
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
            with contextlib.redirect_stdout(io.StringIO()), _limited(SECONDS):
                exec(compile(example.source, "<example>", "single"), names)  # an example, as doctest runs it
        except (Exception, _TooLongError):  # an example that needs what is not there
            continue
        for args, keywords in met:
            places = tuple(_places((args, keywords)))
            call = Call(name, function, args, keywords, places)
            if places and _value(call, call.start) is not None:
                return call
        met.clear()
    return None


WAYS: dict[str, Callable[[Call], tuple[Any, Any]]] = {
    "interpreted": lambda call: sa.value_and_grad(call.of_list)(call.start),
    "compiled": lambda call: sa.compile(sa.value_and_grad(call.of_list), call.start)(call.start),
}


def outcome(call: Call, way: str) -> Outcome:
    """Differentiate a call in one way, and compare; what differs is looked at again beside the point."""
    found = _compared(call, way)
    if found.kind != "wrong":
        return found
    beside = Call(call.name, call.function, *_moved(call), call.places)
    if _value(beside, beside.start) is not None and _compared(beside, way).kind == "right":
        return Outcome("switch", f"right beside the point; at it, {found.text}")
    return Outcome("rounding", found.text) if _is_rounding(call) else found


def _compared(call: Call, way: str) -> Outcome:
    start = call.start
    expected = _value(call, start)
    assert expected is not None
    try:
        with _limited(SECONDS):
            value, gradient = WAYS[way](call)
    except _TooLongError:
        return Outcome("slow")
    except WorkbenchError as error:
        return Outcome("refused", f"{type(error).__name__}: {error}")
    except Exception as error:
        return Outcome("crash", f"{type(error).__name__}: {error}")
    slopes = np.atleast_1d(np.asarray(gradient, dtype=float))
    lost = 1e-14 * float(np.sum(np.abs(slopes * start)))  # by rounding, where large numbers cancel
    if not _close(value, expected, 1e-9 * abs(expected) + lost):
        return Outcome("wrong", f"value {value} for {expected}")
    try:
        with _limited(5 * SECONDS):
            for k, slope in enumerate(slopes):
                complaint = _complaint(call, start, k, float(slope))
                if complaint:
                    return Outcome("wrong", f"argument {call.places[k]}: {complaint}")
    except _TooLongError:
        return Outcome("slow", "to compare")
    return Outcome("right")


def _moved(call: Call) -> tuple[Any, Any]:
    """Return the arguments with their numbers moved a little, each by an amount of its own: off an `==` or a bound."""
    arguments: Any = (call.args, call.keywords)
    for k, place in enumerate(call.places):
        arguments = _put(arguments, place, _at(arguments, place) * (1 + 1e-5 * math.sqrt(k + 2)) + 1e-30)
    return arguments


def _is_rounding(call: Call) -> bool:
    """Whether doubles lose half of the digits of what is computed: the kernel's program at 50 digits says so."""
    try:
        with _limited(SECONDS):
            kernel = sa.compile(sa.value_and_grad(call.of_list), call.start)
            return sa.verify(kernel, call.start).worst_ulp > HALF
    except (Exception, _TooLongError):
        return False


def _complaint(call: Call, start: Sequence[float], k: int, slope: float) -> str:
    """Return what is wrong with a partial derivative, "" if nothing is; at a kink either side's will do."""
    found = [_difference(call, start, k, sides) for sides in ((1, -1), (1, 0), (0, -1))]
    if any(math.isnan(expected) for expected, _ in found[:1]) or any(_close(slope, *pair) for pair in found):
        return ""
    return f"{slope!r} for {found[0][0]!r} (one side {found[1][0]!r}, the other {found[2][0]!r})"


def _difference(call: Call, start: Sequence[float], k: int, sides: tuple[int, int]) -> tuple[float, float]:
    """Return an extrapolated difference quotient and how far it may be off: what neighbouring steps differ by."""
    scale = abs(start[k]) or 1.0
    size = abs(_value(call, start) or 0.0)
    quotients, noise = [], []
    for step in STEPS:
        ends = [_value(call, [*start[:k], start[k] + side * step * scale, *start[k + 1 :]]) for side in sides]
        width = (sides[0] - sides[1]) * step * scale
        quotients.append(math.nan if None in ends else (ends[0] - ends[1]) / width)  # type: ignore[operator]
        noise.append(1e-15 * size / abs(width))
    order = 4 if sides == (1, -1) else 2
    better = [(order * fine - rough) / (order - 1) for rough, fine in pairwise(quotients)]
    trio = [(abs(b - a), b, n) for (a, b), n in zip(pairwise(better), noise[2:], strict=True)]
    pairs = [pair for pair in trio if not math.isnan(pair[0])]
    if not pairs:
        return math.nan, 0.0
    off, best, noisy = min(pairs, key=lambda pair: pair[0] + pair[2])
    return best, CLOSE * max(abs(best), size / scale * 1e-3) + 10 * (off + noisy)


def _close(found: float, expected: float, off: float) -> bool:
    return bool(found == expected or abs(found - expected) <= off or (math.isnan(found) and math.isnan(expected)))


def _value(call: Call, numbers: Sequence[float]) -> float | None:
    """Return the plain call's number, None where it raises or gives none."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), _limited(SECONDS):
            value = call(*numbers)
        return float(value) if isinstance(value, float | int | np.floating) else None
    except Exception:  # outside of its domain
        return None
    except _TooLongError:
        if _is_limited():  # the limit of what asks
            raise
        return None


# Arguments and results


def _modules(package: str) -> Iterator[ModuleType]:
    whole = importlib.import_module(package)
    yield whole
    for found in pkgutil.walk_packages(getattr(whole, "__path__", []), f"{package}."):
        with contextlib.suppress(Exception):  # a module that needs what is not installed
            yield importlib.import_module(found.name)


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where the floats are in lists, tuples and dicts (floats of an array are left as they are)."""
    if type(value) is float and math.isfinite(value):
        yield place
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if type(value) in (list, tuple) else ()
    for key, part in items:
        yield from _places(part, (*place, key))


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


def _put(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """Return a container with one part replaced."""
    if not place:
        return new
    if isinstance(value, dict):
        return {**value, place[0]: _put(value[place[0]], place[1:], new)}
    parts = [_put(part, place[1:], new) if k == place[0] else part for k, part in enumerate(value)]
    return type(value)(parts)


def _numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, np.ndarray):
        value = list(value.ravel())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, float | np.floating):
        yield value
    elif not isinstance(value, int | str | np.bool_ | np.integer | None):  # another library's numbers
        raise TypeError


class _TooLongError(BaseException):
    """The limit of seconds is over; an `except Exception` of foreign code does not catch this."""


@contextlib.contextmanager
def _limited(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooLongError

    def ignore(number: int, frame: FrameType | None) -> None:
        stop()

    if _is_limited():
        yield
        return
    signal.signal(signal.SIGALRM, ignore)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.001)  # again and again: bare `except`s catch it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _is_limited() -> bool:
    return signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL


def main(arguments: Sequence[str]) -> int:
    """Differentiate the packages; the status is the number of wrong results."""
    parser = argparse.ArgumentParser(prog="python -m tests.foreign")
    parser.add_argument("packages", nargs="+")
    parser.add_argument("--only", default="", help="functions with this in their names")
    parser.add_argument("--all", action="store_true", help="also name what is refused or slow")
    options = parser.parse_args(arguments)
    wrong = 0
    for package in options.packages:
        counts: dict[str, Counter[str]] = {way: Counter() for way in WAYS}
        for call in calls_of(package):
            for way in WAYS if options.only in call.name else ():
                found = outcome(call, way)
                counts[way][found.kind] += 1
                if found.kind in ("wrong", "crash") or (options.all and found.kind != "right"):
                    print(f"{way} {call.name}: {found.kind}: {found.text}", flush=True)
        for way, kinds in counts.items():
            wrong += kinds["wrong"]
            print(f"{package}, {way}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
    return wrong


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(min(main(sys.argv[1:]), 100))
