"""Names that are imported when they are asked for: all are there, none hides a module, and little comes along."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

import codegen
import symad.display
from codegen.errors import NotInstalledError
from codegen.later import Deferred

LOADED = "import sys, symad; {use}; print(*sorted(sys.modules))"


def loaded(use: str) -> set[str]:
    command = [sys.executable, "-c", LOADED.format(use=use)]
    users = os.environ | {"SYMAD_STRICT": "0"}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=users)
    return set(ran.stdout.split())


@pytest.mark.parametrize("package", [codegen, symad, symad.display], ids=lambda package: package.__name__)
def test_every_name_is_there_and_hides_no_module(package):
    assert package.__all__
    for name in package.__all__:
        value = getattr(package, name)
        hidden = find_spec(f"{package.__name__}.{name}")  # importing it would put it in the place of the name
        assert hidden is None or value is import_module(hidden.name)
        assert name in dir(package)


def test_what_is_not_there_is_said_as_python_says_it():
    with pytest.raises(AttributeError, match="module 'symad' has no attribute 'gradient'"):
        _ = symad.gradient
    with pytest.raises(ImportError, match="cannot import name 'gradient' from 'symad'"):
        exec("from symad import gradient")


def test_a_name_of_a_module_that_is_there_asks_nothing_of_the_collector(monkeypatch):
    """It would count all frozen objects for each of the names: a tenth of a second where there are a million."""
    later = import_module("codegen.later")
    find, _ = later.later("codegen")
    assert find("lambdify") is codegen.lambdify
    monkeypatch.delattr(later, "imports")
    assert find("lambdify") is codegen.lambdify
    monkeypatch.delitem(sys.modules, codegen.lambdify.__module__)
    with pytest.raises(NameError, match="imports"):
        find("lambdify")


def test_importing_the_package_imports_neither_sympy_nor_numpy():
    assert not loaded("pass") & {"sympy", "numpy", "llvmlite", "symad.tracing"}


def test_derivatives_and_kernels_need_nothing_that_draws_checks_or_teaches():
    found = loaded("symad.grad, symad.hessian, symad.trace, symad.compile, symad.plan, symad.jit")
    assert {"sympy", "symad.tracing.trace", "symad.compiling.native"} <= found
    shown = {"symad.classroom", "symad.doors", "symad.display.html", "symad.display.terminal"}
    assert not found & {*shown, "rich", "latex2mathml", "pygments"}


def test_a_first_kernel_needs_no_masked_arrays():
    use = "import numpy as np; x = np.ones(2); symad.grad(np.sum)(x); symad.compile(symad.hessian(np.prod), x)(x)"
    assert not loaded(use) & {"numpy.ma", "scipy"}


def test_a_missing_library_is_named():
    with pytest.raises(NotInstalledError, match=r"this needs no_such_library: .*; pip install no_such_library"):
        _ = Deferred("no_such_library.part").name
