"""Functions of compiled packages (SWIG, pybind11, Cython, Rust, C) called with traced values: an error, and no crash.

`python -m tests.support.compiled_packages NAME` calls one; without a name all, each in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import symad as sa

CALLS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "casadi sin": ("casadi", lambda m, x: m.sin(x[0])),
    "casadi sumsqr": ("casadi", lambda m, x: m.sumsqr(x)),
    "casadi SX": ("casadi", lambda m, x: m.SX.sym("s", 2) * np.asarray(x)),
    "casadi SX of one": ("casadi", lambda m, x: m.SX.sym("s") + x[0]),
    "casadi DM": ("casadi", lambda m, x: m.DM(x)),
    "casadi Function": (
        "casadi", lambda m, x: (lambda s: m.Function("f", [s], [m.sumsqr(s)]))(m.MX.sym("s", 2))(x),
    ),
    "flint arb": ("flint", lambda m, x: m.arb(x[0])),
    "flint arb_mat": ("flint", lambda m, x: m.arb_mat([[x[0], x[1]]])),
    "symengine": ("symengine", lambda m, x: m.sin(x[0]) + x),
    "symengine RealDouble": ("symengine", lambda m, x: m.RealDouble(x[0])),
    "igraph": ("igraph", lambda m, x: m.Graph([(0, 1)]).pagerank(weights=[x[0]])),
    "kiwisolver": ("kiwisolver", lambda m, x: m.Variable("v") * x[0]),
    "contourpy": ("contourpy", lambda m, x: m.contour_generator(z=np.outer(np.ones(2), x)).lines(0.5)),
    "contourpy level": ("contourpy", lambda m, x: m.contour_generator(z=np.eye(2)).lines(x[0])),
    "msgpack": ("msgpack", lambda m, x: m.packb(x[0])),
    "ml_dtypes": ("ml_dtypes", lambda m, x: m.bfloat16(x[0])),
    "PIL": ("PIL.Image", lambda m, x: m.new("F", (2, 2), x[0])),
    "PIL array": ("PIL.Image", lambda m, x: m.fromarray(x)),
    "rpds": ("rpds", lambda m, x: m.HashTrieMap({x[0]: 1})),
    "matplotlib path": ("matplotlib.path", lambda m, x: m.Path(np.eye(2)).contains_point((x[0], x[1]))),
    "pandas": ("pandas", lambda m, x: m.Series([1.0, 2.0]).ewm(alpha=x[0]).mean().sum()),
    "jax": ("jax.numpy", lambda m, x: m.sin(x)),
    "sksundae": ("sksundae.cvode", lambda m, x: m.CVODE(lambda t, y, yp: None, rtol=x[0])),
    "optree": ("optree", lambda m, x: m.tree_map(lambda v: v, [x])[0][0]),
    "fontTools": ("fontTools.misc.bezierTools", lambda m, x: m.calcCubicArcLength(*[(x[0], x[1])] * 4)),
    "scipy cKDTree": ("scipy.spatial", lambda m, x: m.cKDTree(np.eye(2)).query(x)),
    "scipy qhull": ("scipy.spatial", lambda m, x: m.ConvexHull(np.outer(np.arange(4.0), x)).volume),
    "scipy ndimage": ("scipy.ndimage", lambda m, x: m.gaussian_filter(x, 1.0)),
    "scipy sparse": ("scipy.sparse", lambda m, x: m.csr_matrix(np.eye(2)).dot(x)),
    "yaml": ("yaml", lambda m, x: m.dump(x[0])),
    "gmpy2": ("gmpy2", lambda m, x: m.mpfr(x[0])),
    "shapely": ("shapely", lambda m, x: m.Point(x[0], x[1]).buffer(x[0]).area),
    "numexpr": ("numexpr", lambda m, x: m.evaluate("x * 2", {"x": x})),
    "bottleneck": ("bottleneck", lambda m, x: m.nansum(x)),
    "highspy": ("highspy", lambda m, x: m.Highs().addVar(x[0], x[1])),
}  # fmt: skip


def outcome(name: str) -> str:
    """Return "refused", "answered" or the name of an error that is not ours."""
    package, call = CALLS[name]
    module = import_module(package)

    def f(x: Any) -> Any:
        call(module, x)
        return sum(x)

    made = {
        "grad": lambda: sa.grad(f)(np.array([0.3, 0.7])), "compile": lambda: sa.compile(f, np.array([0.3, 0.7])),
    }  # fmt: skip
    if not _raises(lambda: call(module, [0.3, 0.6])):
        made["derivative"] = lambda: sa.derivative(lambda s: f([s, 2 * s]))(0.3)
    refused = set()
    for route, run in made.items():
        try:
            run()
        except sa.WorkbenchError:
            refused.add(route)
        except Exception as error:
            return f"{route}: {type(error).__name__}: {error}"[:200].replace("\n", " ")
    return "refused" if refused else "answered"


def _raises(run: Callable[[], Any]) -> bool:
    """Whether plain numbers are refused."""
    try:
        run()
    except Exception:
        return True
    return False


def main(names: list[str]) -> None:
    """Print what became of the calls."""
    for name in names or CALLS:
        if names:
            print(f"{name}: {outcome(name)}")
            continue
        run = subprocess.run([sys.executable, "-m", __spec__.name, name], capture_output=True, text=True)
        print(run.stdout.strip() if run.returncode == 0 else f"{name}: code {run.returncode} {run.stderr[-100:]!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
