"""opty with symad's kernels in the place of `ufuncify_matrix`: the swing-up of a pendulum of two links on a cart.

The equations of motion are those of pydy's model. opty discretises them, takes its own sparse derivatives, and has C
written and compiled; here machine code is made at once. opty has no Hessian: a collocation problem with an exact one is
`benchmarks/solver_problems.py`.
"""

import time

import numpy as np
import opty.direct_collocation as collocation
import sympy as sp
from opty import Problem
from pydy.models import n_link_pendulum_on_cart

import codegen
import symad as sa

LINKS, NODES, DURATION = 2, 101, 4.0


def ufuncify_matrix(args, expr, const=None, tmp_dir=None, parallel=False, show_compile_output=False):
    """Return what opty's function of this name returns: `f(result, *args)` fills a row of entries for each node."""
    replacements, (matrix,) = expr if isinstance(expr, tuple) else ([], [expr])
    row = sa.from_program(codegen.program_from_sympy(args, [list(matrix)], replacements=replacements))
    kernels = {}  # for each number of nodes

    def evaluate(result, *values):
        if len(result) not in kernels:
            axes = tuple(0 if np.ndim(value) else None for value in values)  # a number for each node, or a constant
            kernels[len(result)] = sa.compile(sa.vmap(row, axes), *values)
        return kernels[len(result)](*values, out=result)

    return evaluate


def model():
    """Return the equations of motion, and what is known of them."""
    system = n_link_pendulum_on_cart(LINKS, cart_force=True)
    time_symbol = sp.Symbol("t")
    states = [*system.coordinates, *system.speeds]
    kane = system.eom_method
    equations = kane.mass_matrix_full * sp.Matrix([state.diff(time_symbol) for state in states]) - kane.forcing_full
    masses = {symbol: 9.81 if str(symbol) == "g" else 1.0 for symbol in system.constants_symbols}
    return equations, states, next(iter(system.specifieds_symbols)), masses


def problem():
    """Return opty's problem: least force, from hanging to standing."""
    equations, states, force, constants = model()
    step = DURATION / (NODES - 1)
    first = [state.subs(sp.Symbol("t"), 0.0) for state in states]
    last = [state.subs(sp.Symbol("t"), DURATION) for state in states]
    count = len(states) // 2
    hanging = [0.0, *[-np.pi / 2] * (count - 1), *[0.0] * count]
    standing = [0.0, *[np.pi / 2] * (count - 1), *[0.0] * count]
    ends = [a - b for a, b in zip([*first, *last], [*hanging, *standing], strict=True)]

    def objective(free):
        return step * np.sum(free[-NODES:] ** 2)

    def gradient(free):
        found = np.zeros_like(free)
        found[-NODES:] = 2 * step * free[-NODES:]
        return found

    return Problem(objective, gradient, equations, states, NODES, step, known_parameter_map=constants,
                   instance_constraints=ends, time_symbol=sp.Symbol("t"), bounds={force: (-100.0, 100.0)})  # fmt: skip


def guess(made):
    """Return states in a straight line from end to end, without force."""
    count = made.collocator.num_states // 2
    lines = [np.linspace(-np.pi / 2, np.pi / 2, NODES) if 0 < k < count else np.zeros(NODES) for k in range(2 * count)]
    return np.concatenate([*lines, np.zeros(NODES)])


def timed(function, *arguments):
    """Return the seconds of the best of some calls."""
    times = []
    for _ in range(100):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    found = []
    theirs = collocation.ufuncify_matrix
    for name, function in (("opty", theirs), ("symad", ufuncify_matrix)):
        collocation.ufuncify_matrix = function
        start = time.perf_counter()
        made = problem()
        seconds = time.perf_counter() - start
        collocation.ufuncify_matrix = theirs
        free = np.random.default_rng(1).uniform(-1, 1, made.num_free)
        found.append((made.con(free), made.con_jac(free)))
        rows, entries = (1e6 * timed(call, free) for call in (made.con, made.con_jac))
        made.add_option("print_level", 0)
        made.add_option("max_iter", 500)
        start = time.perf_counter()
        _, told = made.solve(guess(made))
        solved = time.perf_counter() - start
        print(f"{name}: built in {seconds:.2f} s, constraints {rows:.0f} us, their Jacobian {entries:.0f} us a call; "
              f"{told['status_msg'].decode()[:32]}..., {told['obj_val']:.6g}, {solved:.2f} s")  # fmt: skip
    for ours, expected in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-9)


if __name__ == "__main__":
    main()
