"""SciPy's compiled code that is given traced values: a TraceError that names the function, whatever C code raised."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import symad as sa
from symad.errors import BoundWarning, TraceError

optimize = pytest.importorskip("scipy.optimize")
ndimage = pytest.importorskip("scipy.ndimage")

X = np.array([3.0, 1.0, 2.0])
CASES = {
    "scipy.ndimage.rank_filter": lambda x: ndimage.rank_filter(x, 1, 3).sum(),
    "scipy.ndimage.generic_filter": lambda x: ndimage.generic_filter(x, np.sum, 3).sum(),
    "scipy.ndimage.distance_transform_edt": lambda x: ndimage.distance_transform_edt(x > 1.5).sum() * x[0],
}


@pytest.mark.parametrize("made", [sa.grad, lambda f: lambda x: sa.compile(f, x)], ids=["grad", "compile"])
@pytest.mark.parametrize("name", CASES)
def test_the_function_is_named(name, made):
    with pytest.raises(TraceError, match=rf"test_scipy_refusals\.py:\d+: {name} was called with a traced value"):
        made(CASES[name])(X)


def test_a_solver_is_refused_by_name_in_a_kernel():
    def f(x):
        rule = {"type": "eq", "fun": lambda t: t[0] - x[0] * t[1]}
        return optimize.minimize(lambda t: (t[0] - 1) ** 2 + t[1] ** 2, [1.0, 1.0], constraints=rule).x[1]

    a = X[0]  # the minimum of (a t - 1)**2 + t**2 is a/(1 + a**2)
    assert sa.grad(f)(X) == pytest.approx([(1 - a * a) / (1 + a * a) ** 2, 0.0, 0.0], rel=1e-7)
    where = r"test_scipy_refusals\.py:\d+: scipy\.optimize\.minimize with constraints= in a kernel"
    with pytest.raises(TraceError, match=where):
        sa.compile(f, X)


CARELESS = """
def careless(f):
    try:
        float(f(1.0))
    except Exception:
        pass
    {then}
"""


@pytest.mark.parametrize("then", ["raise ValueError('f(a) and f(b) must have different signs')", "return 1.0"])
def test_what_c_code_does_after_an_error_does_not_matter(then):
    """Whether it goes on with -1, raises an error of its own or a SystemError depends on CPython's inner state."""
    names = {"__name__": "scipy.optimize._careless"}
    exec(compile(CARELESS.format(then=then), optimize.__file__.replace("__init__", "_careless"), "exec"), names)

    def f(x):
        return names["careless"](lambda t: t**3 - x[0])

    with pytest.raises(TraceError, match=r"test_scipy_refusals\.py:\d+: scipy.optimize.careless got a traced value"):
        sa.grad(f)(X)


UPDATING = """
def updating(x):
    x = asarray(x)
    if not x.flags.writeable:
        raise ValueError(f"Can't update read-only array {x}")
"""


@pytest.mark.parametrize("made", [sa.grad, lambda f: lambda x: sa.compile(f, x)], ids=["grad", "compile"])
def test_an_array_that_is_read_only_because_it_is_traced(made):
    """As `at` of array_api_extra says it, which is part of SciPy."""
    names = {"__name__": "scipy.stats._updating", "asarray": np.asarray}
    exec(compile(UPDATING, optimize.__file__.replace("__init__", "_updating"), "exec"), names)

    def f(x):
        names["updating"](np.array([x[0], x[1]], dtype=object))
        names["updating"](np.asarray(x[:2], dtype=object))
        return x[0]

    with pytest.raises(TraceError, match=r"test_scipy_refusals\.py:\d+: scipy\.stats\.updating got a traced value"):
        made(f)(X)


def test_what_does_not_converge_is_said_as_scipy_says_it():
    def f(x):
        optimize.brentq(lambda t: t**3 - 2, 0, 10, maxiter=2)
        return x[0]

    with pytest.raises(RuntimeError, match="Failed to converge"):
        sa.grad(f)(X)


def test_what_does_not_converge_is_said_as_scipy_says_it_on_symbols():
    def f(x):
        if x > 0:
            optimize.newton(lambda t: t**2 + 1, 1.0, lambda t: 2 * t, maxiter=3)
        return x

    with pytest.raises(RuntimeError, match="Failed to converge") as caught:
        sa.compile(f, 2.0)
    assert not isinstance(caught.value, TraceError)


def test_system_and_runtime_errors_of_the_users_own_come_out():
    def f(x):
        raise SystemError("mine")

    with pytest.raises(SystemError, match="mine"):
        sa.grad(f)(X)


CRASHES = """
import gc, sys
import numpy as np, scipy.interpolate, scipy.spatial, scipy.stats, symad as sa

points, table = np.random.default_rng(0).random((8, 2)), np.arange(8.0)
plane, heights = np.meshgrid(table, table), np.add.outer(table, table**2)
functions = {
    "hull": lambda x: scipy.spatial.ConvexHull(points * x[0]).volume,
    "triangles": lambda x: float(scipy.spatial.Delaunay(points * x[0]).npoints),
    "surface": lambda x: scipy.interpolate.bisplrep(plane[0] * x[0], plane[1], heights)[2].sum(),
    "cython": lambda x: scipy.stats.vonmises.logcdf(x[0], x[1]),
}
f = functions[sys.argv[1]]
for _ in range(int(sys.argv[2])):
    for way in (lambda x: sa.grad(f)(x), lambda x: sa.compile(f, x)):
        try:
            way(np.array([1.5, 2.5]))
        except sa.errors.TraceError as error:
            said = str(error)
gc.collect()
print(said)
"""


@pytest.mark.parametrize(("name", "times"), [("hull", 2), ("triangles", 2), ("surface", 80), ("cython", 1)])
@pytest.mark.thinned
def test_compiled_code_that_breaks_on_refusals_does_not_end_the_process(name: str, times: int) -> None:
    """Cython's modules get no stand-ins; C code that frees too much where a conversion fails gets NaN instead."""
    command = [sys.executable, "-c", CRASHES, name, str(times)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "traced value" in done.stdout


TYPED = {
    "buffers": lambda x: float(len(memoryview(x))),
    "methods": lambda x: np.ndarray.trace(np.outer(x, x)),
    "shapes": lambda x: setattr(x, "shape", (3, 1)) or x.sum(),
    "cython": lambda x: pytest.importorskip("scipy.stats._stats").von_mises_cdf(x, x).sum(),
}


@pytest.mark.parametrize("made", [sa.grad, lambda f: lambda x: sa.compile(f, x)], ids=["grad", "compile"])
@pytest.mark.parametrize("name", TYPED)
def test_compiled_code_with_typed_arguments(name, made):
    """What it says of a traced array's type is no error of the user's."""
    with pytest.raises(TraceError, match=r"traced (value|array)"):
        made(TYPED[name])(X)


signal = pytest.importorskip("scipy.signal")
interpolate = pytest.importorskip("scipy.interpolate")
OF_OBJECTS = {
    "scipy.signal.order_filter": lambda x: signal.order_filter(x, np.ones(3), 1)[1],
    "scipy.signal.lfiltic": lambda x: signal.lfiltic([1.0], [1.0, 0.5], x)[0],
    "scipy.ndimage.binary_hit_or_miss": lambda x: ndimage.binary_hit_or_miss(x)[0] * x[0],
    "scipy.ndimage.grey_opening": lambda x: ndimage.grey_opening(x, 3)[1],
    "scipy.interpolate.spalde": lambda x: interpolate.spalde(x[0], interpolate.splrep(np.arange(5.0), np.arange(5.0)))[
        0
    ],
    "scipy.stats.gstd": lambda x: pytest.importorskip("scipy.stats").gstd(x + 2),
    "scipy.ndimage.find_objects": lambda x: len(ndimage.find_objects(x)) * x[0],
}


@pytest.mark.parametrize("made", [sa.grad, lambda f: lambda x: sa.compile(f, x)], ids=["grad", "compile"])
@pytest.mark.parametrize("name", OF_OBJECTS)
def test_compiled_code_that_takes_no_objects(name, made):
    """C code and Cython say it in words, and by errors, of their own."""
    with pytest.raises(TraceError, match=rf"test_scipy_refusals\.py:\d+: scipy\.{name.split('.')[1]}.* a traced value"):
        made(OF_OBJECTS[name])(X)


def test_a_nan_function_of_an_array_that_is_to_hold_objects():
    def f(x):
        return np.nanmax(np.array([x[0], x[1]], dtype=object))

    assert np.array_equal(sa.grad(f)(X), [1.0, 0.0, 0.0])
    assert sa.compile(f, X)(X) == 3.0


CALLBACKS = {
    "fsolve": (lambda x: optimize.fsolve(lambda y: y**3 - x[0], 1.5)[0], 3 ** (-2 / 3) / 3),
    "fsolve of a list": (
        lambda x: optimize.fsolve(lambda y: [y[0] ** 3 - x[0], y[1] - x[1]], [1.5, 1.0])[0],
        3 ** (-2 / 3) / 3,
    ),
    "leastsq": (lambda x: optimize.leastsq(lambda y: y - x[:2], [1.5, 1.0])[0][0], 1.0),
    "leastsq of a list": (
        lambda x: optimize.leastsq(lambda y: [y[0] - x[0], y[1] - x[1]], [1.5, 1.0])[0][0],
        1.0,
    ),
    "root": (lambda x: optimize.root(lambda y: y - x[:2], [1.5, 1.0], jac=lambda y: np.eye(2) * x[0]).x[0], 1.0),
}


@pytest.mark.filterwarnings("ignore:The iteration:RuntimeWarning")
@pytest.mark.parametrize("name", CALLBACKS)
def test_compiled_code_that_prints_the_errors_of_its_callbacks_prints_nothing(name, capfd):
    f, slope = CALLBACKS[name]
    assert sa.grad(f)(X) == pytest.approx([slope, 0.0, 0.0], rel=1e-12)
    where = r"test_scipy_refusals\.py:\d+: scipy\.optimize\.\w+ in a kernel is Newton's method"
    with pytest.warns(BoundWarning, match=where):
        kernel = sa.compile(sa.grad(f), X)
    assert kernel(X) == pytest.approx([slope, 0.0, 0.0], rel=1e-12)
    assert capfd.readouterr().err == ""
