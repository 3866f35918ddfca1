"""What a program asks an optimizer to minimize, taken from the program where it runs: as it is, nothing rewritten.

Scripts run as scripts, packages fit their models; where the optimizer would begin, its objective and start are taken
and the program ends. What is differentiated there by a package's own tool is known by its mark.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import io
import os
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import numpy as np

Function = Callable[..., Any]
Gradient = Callable[[Function], Function]  # value and gradient of a function, by a tool


class CapturedError(BaseException):
    """An objective and where its optimizer would begin; no `except Exception` of the program catches it."""

    def __init__(self, function: Function, start: Any) -> None:
        super().__init__()
        self.function, self.start = function, start


class Marked:
    """The derivative of a function, not taken: a call says where it would be."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def __call__(self, start: Any, *rest: Any) -> Any:
        raise CapturedError(lambda x: self.function(x, *rest), start)


class Repeated(np.random.RandomState):
    """Random numbers that begin again with every call of what was captured."""

    made: ClassVar[list[Repeated]] = []

    def __init__(self, seed: Any = None) -> None:
        super().__init__(0 if seed is None else seed)
        self.made.append(self)


def again(function: Function) -> Function:
    """Return the function with the same random numbers in each call, and nothing printed."""
    states = [(each, each.get_state()) for each in Repeated.made]

    def repeated(x: Any) -> Any:
        for each, state in states:
            each.set_state(state)
        with contextlib.redirect_stdout(io.StringIO()):
            return function(x)

    return repeated


def minimize(fun: Any, x0: Any, args: Any = (), **_: Any) -> Any:
    """Take the place of `scipy.optimize.minimize`."""
    rest = args if isinstance(args, tuple) else (args,)
    inner = fun.function if isinstance(fun, Marked) else fun
    raise CapturedError(lambda x: inner(x, *rest), np.asarray(x0, dtype=float))


def optimizer(gradient: Any, start: Any, *_: Any, **__: Any) -> Any:
    """Take the place of `autograd.misc.optimizers`: gradients are asked for with a number of a step."""
    gradient(start, 0)
    raise AssertionError("no gradient was asked for")


def captured(program: Callable[[], Any]) -> tuple[Function, Any]:
    """Run a program until it minimizes; return the objective and the start."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program()
    except CapturedError as found:
        return again(found.function), found.start
    raise AssertionError("nothing was minimized")


@contextlib.contextmanager
def optimizers_taken(exchange: bool) -> Iterator[None]:
    """Take the place of the optimizers of SciPy and autograd, of autograd's derivatives, and of random states."""
    with contextlib.ExitStack() as stack:

        def put(module: str, name: str, value: Any) -> None:
            stack.enter_context(mock.patch.object(importlib.import_module(module), name, value))

        put("scipy.optimize", "minimize", minimize)
        for name in ("grad", "value_and_grad", "hessian_vector_product"):
            put("autograd", name, Marked)
        for name in ("adam", "sgd", "rmsprop"):
            put("autograd.misc.optimizers", name, optimizer)
        put("autograd.numpy.random", "RandomState", Repeated)
        put("numpy.random", "RandomState", Repeated)
        if exchange:
            put("autograd.misc.flatten", "flatten", flatten)
            put("autograd.misc", "flatten", flatten)
            put("autograd.misc.flatten", "flatten_func", flatten_func)
        yield


class Exchanged(importlib.machinery.SourceFileLoader):
    """Modules of a folder with other imports: autograd's names for NumPy's and SciPy's."""

    def get_code(self, fullname: str) -> types.CodeType:
        """Return the code with the imports exchanged, line for line."""
        return compile(exchanged(self.get_data(self.path).decode()), self.path, "exec")


def exchanged(source: str) -> str:
    """Return a source with NumPy's and SciPy's modules in place of autograd's.

    >>> exchanged("import autograd.numpy as np; import autograd.scipy.stats.norm as norm")
    'import numpy as np; from scipy.stats import norm as norm'
    """
    source = source.replace("autograd.numpy", "numpy")
    source = re.sub(r"import autograd\.scipy\.stats\.(\w+) as", r"from scipy.stats import \1 as", source)
    return re.sub(r"autograd\.scipy(?!\.signal)", "scipy", source)


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Take the place of `autograd.misc.flatten.flatten`: the elements of a container in one array, and the way back."""
    if not isinstance(value, (dict, list, tuple)):
        shape, size = np.shape(value), np.size(value)
        return np.ravel(value), lambda flat: np.reshape(flat[:size], shape)
    keys = sorted(value) if isinstance(value, dict) else range(len(value))
    parts = [flatten(value[key]) for key in keys]
    ends = np.cumsum([0, *(np.size(part) for part, _ in parts)])

    def unflatten(flat: Any) -> Any:
        found = [back(flat[a:b]) for (_, back), a, b in zip(parts, ends[:-1], ends[1:], strict=True)]
        return dict(zip(keys, found, strict=True)) if isinstance(value, dict) else type(value)(found)

    return np.concatenate([part for part, _ in parts]), unflatten


def flatten_func(function: Function, value: Any) -> tuple[Function, Any, Any]:
    """Take the place of `autograd.misc.flatten.flatten_func`."""
    flat, unflatten = flatten(value)
    return lambda x: function(unflatten(x)), unflatten, flat


def script(path: Path, exchange: bool, **modules: types.ModuleType) -> tuple[Function, Any]:
    """Return what a script minimizes that is run as a script; its folder's modules are found, or `modules` instead."""
    os.environ["MPLBACKEND"] = "Agg"
    kept = dict(sys.modules)
    kind = Exchanged if exchange else importlib.machinery.SourceFileLoader

    def hook(folder: str) -> Any:
        if Path(folder) != path.parent:
            raise ImportError(folder)
        return importlib.machinery.FileFinder(folder, (kind, [".py"]))

    sys.path_importer_cache.pop(str(path.parent), None)
    loader = kind("__main__", str(path))
    spec = importlib.util.spec_from_loader("__main__", loader)
    assert spec is not None
    with optimizers_taken(exchange), mock.patch.object(sys, "path_hooks", [hook, *sys.path_hooks]):
        sys.path.insert(0, str(path.parent))
        sys.modules.update(modules)
        module = importlib.util.module_from_spec(spec)
        found = captured(lambda: loader.exec_module(module))
    sys.path.remove(str(path.parent))
    for name in [
        name for name, each in sys.modules.items() if Path(getattr(each, "__file__", None) or "/").parent == path.parent
    ]:
        del sys.modules[name]
    sys.modules.update({name: kept[name] for name in modules if name in kept})
    return found
