"""pycalphad's `build_functions` with symad's kernels: Gibbs energy of phases of a real database, gradient and Hessian.

The database is one that pycalphad brings: nickel and aluminium with ordered phases, by Dupin et al. (2001). Its model
is an expression of SymEngine with nested Piecewise; symad reads it, and differentiates it as it is.
"""

import importlib.resources
import time
from collections import namedtuple

import numpy as np
import symengine
from pycalphad import Database, Model, variables as v
from pycalphad.codegen.sympydiff_utils import build_functions as by_symengine

import symad as sa

BuildFunctionsResult = namedtuple("BuildFunctionsResult", ["func", "grad", "hess"])
PHASES = ("LIQUID", "FCC_L12", "BCC_B2")


def build_functions(symengine_graph, variables, parameters=None, wrt=None, include_obj=True, include_grad=False,
                    include_hess=False):  # fmt: skip
    """Build what pycalphad's function of this name builds; derivatives are in all variables."""
    inputs = [*variables, *(parameters or [])]
    graph = symengine.sympify(symengine_graph).xreplace({symengine.zoo: symengine.oo})
    rows = [inputs.index(symbol) for symbol in (variables if wrt is None else wrt)]
    energy = sa.lambdify([inputs], graph, tier="fast")
    formula, point = sa.from_program(energy.kernel.program), np.ones(len(inputs))

    def kernel(derivative, wanted):
        return sa.compile(lambda values: derivative(formula)(values)[wanted], point, tier="fast")

    return BuildFunctionsResult(
        energy if include_obj else None,
        kernel(sa.grad, np.array(rows)) if include_grad else None,
        kernel(sa.hessian, np.ix_(rows, rows)) if include_hess else None,
    )


def timed(function, *arguments, calls=300, **options):
    """Return what a function gives, and the seconds of its best call."""
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        found = function(*arguments, **options)
        times.append(time.perf_counter() - start)
    return found, min(times)


def main():
    path = importlib.resources.files("pycalphad.tests.databases") / "alni_dupin_2001.tdb"
    database = Database(str(path))
    wanted = {"include_grad": True, "include_hess": True}
    for phase in PHASES:
        model = Model(database, ["AL", "NI", "VA"], phase)
        variables = [v.P, v.T, *model.site_fractions]
        point = np.array([101325.0, 1200.0, *np.random.default_rng(1).uniform(0.2, 0.8, len(model.site_fractions))])
        theirs, before = timed(by_symengine, model.GM, variables, calls=1, **wanted)
        ours, after = timed(build_functions, model.GM, variables, calls=1, **wanted)
        print(f"{phase}: {len(variables)} variables, built in {before:.2f} s by SymEngine, {after:.2f} s by symad")
        for name in ("func", "grad", "hess"):
            expected, slow = timed(getattr(theirs, name), point)
            found, quick = timed(getattr(ours, name), point)
            scale = np.max(np.abs(np.asarray(expected)))
            np.testing.assert_allclose(np.ravel(found), np.ravel(expected), rtol=1e-9, atol=1e-11 * scale)
            print(f"  {name}: {1e6 * slow:.1f} us, {1e6 * quick:.1f} us by symad")


if __name__ == "__main__":
    main()
