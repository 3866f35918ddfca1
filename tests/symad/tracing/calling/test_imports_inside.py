"""Names that a function imports when it is called: stand-ins reach them, as those of its module."""

# ruff: noqa: PLC0415 - imports inside of functions are what is tested

import builtins
import math
import sys
import threading

import numpy as np
import pytest

import symad as sa

pytest.importorskip("scipy")

X = np.array([0.5, 1.3])
TABLE = np.array([0.0, 1.0, 2.0, 0.0])


def of_math(x):
    from math import hypot, sqrt

    return sqrt(x[0]) * hypot(x[0], x[1])


def under_another_name(x):
    import math as m

    import numpy as numbers

    z = numbers.zeros(2)
    z[0], z[1] = x[1], m.exp(x[0])
    return z[0] * z[1]


def an_integral(x):
    from scipy.integrate import quad

    return quad(lambda t: np.exp(t * x[0]) * x[1], 0, 1)[0]


def a_factor(x):
    from scipy import linalg

    factor, _ = linalg.cho_factor(np.array([[2.0, x[0]], [x[0], x[1]]]))
    return 2 * np.sum(np.log(factor.diagonal()))


def a_root(x):
    import scipy.optimize

    return scipy.optimize.brentq(lambda t: t**3 - x[0] * x[1], 0.0, 3.0)


def a_spline(x):
    from scipy.interpolate import splev, splrep

    return splev(x[0], splrep([0.0, 0.3, 0.6, 1.0, 1.4], [1.0, 2.0, 0.5, 0.1, 1.0])) * x[1]


def on_a_branch(x):
    if x[0] > 0:
        from math import atan

        return atan(x[0]) * x[1]
    return x[0]


class Model:
    def energy(self, x):
        from math import log

        return log(x[0]) * x[1]


@pytest.mark.parametrize(
    "f", [of_math, under_another_name, an_integral, a_factor, a_root, a_spline, on_a_branch, Model().energy]
)
def test_what_a_function_imports_is_traced(f):
    """Derivatives by central differences of plain calls, interpreted and in a kernel."""
    steps = 1e-6 * np.eye(2)
    slopes = [(f(X + step) - f(X - step)) / 2e-6 for step in steps]
    for differentiated in (sa.value_and_grad(f), sa.compile(sa.value_and_grad(f), X)):
        value, gradient = differentiated(X)
        assert value == pytest.approx(f(X), rel=1e-12)
        assert gradient == pytest.approx(slopes, rel=1e-7)
    mixed = sa.hessian(f)(X)
    rows = [(sa.grad(f)(X + step) - sa.grad(f)(X - step)) / 2e-6 for step in steps]
    assert mixed == pytest.approx(np.stack(rows), rel=1e-6, abs=1e-9)


def test_the_builtin_comes_back():
    """After a run, after a refusal, and after an error of the function's own."""
    own = builtins.__import__

    def refused(x):
        from math import nextafter

        return nextafter(x[0], 9.0)

    def mine(x):
        from math import sqrt

        raise KeyError(sqrt(x[0]))

    assert sa.grad(of_math)(X).shape == (2,)
    for f in (refused, mine):
        with pytest.raises((TypeError, KeyError)):
            sa.grad(f)(X)
    assert builtins.__import__ is own


def test_what_is_kept_as_a_global_name_is_the_original():
    """It would stay after the run."""
    names: dict[str, object] = {"__name__": "kept"}
    text = "def f(x):\n    global math\n    import math\n    return float(x[0]) * x[1]\n"
    exec(compile(text, "kept.py", "exec"), names)
    assert sa.grad(names["f"])(X).tolist() == [1.3, 0.5]
    assert names["math"] is math


def test_modules_that_are_loaded_and_other_threads_get_originals(tmp_path, monkeypatch):
    """A module that the run imports for the first time keeps what it imports."""
    (tmp_path / "loaded_inside.py").write_text(
        "import math\nfrom math import sqrt\n\ndef root(x):\n    return sqrt(x)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    found = []

    def in_a_thread():
        import math

        found.append(math)

    def f(x):
        from loaded_inside import root

        thread = threading.Thread(target=in_a_thread)
        thread.start()
        thread.join()
        return root(x[0]) * float(x[1])

    assert sa.grad(f)(X) == pytest.approx([0.5 * X[1] / math.sqrt(X[0]), math.sqrt(X[0])])
    module = sys.modules.pop("loaded_inside")
    assert module.math is math
    assert module.sqrt is math.sqrt
    assert set(map(id, found)) == {id(math)}


def of_a_table(x):
    made = np.zeros_like(TABLE, dtype=np.float64)
    made[TABLE == 0] = np.log(x[0])
    made[TABLE > 0] = x
    return made.sum() * np.tile(TABLE, 2)[6] + np.repeat(TABLE, 2).sum()


def test_an_array_like_one_of_the_module_takes_traced_values():
    """`np.zeros_like(TABLE)`, where the table is a name of the module that other elements may be asked of."""
    expected = [2 * (1 + 2 / X[0]), 2.0]
    assert sa.grad(of_a_table)(X) == pytest.approx(expected)
    assert sa.compile(sa.grad(of_a_table), X)(X) == pytest.approx(expected)
