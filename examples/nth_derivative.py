"""Derivatives of any order, by forward mode, by reverse mode, by both, and by Taylor polynomials.

A derivative that is passed through the same procedure again gives the next one, whichever mode each step takes. What
differs is the cost. In one direction, nested forward mode grows with a power of the order, because equal operations are
shared; Taylor polynomials grow more slowly; nested reverse mode doubles from one order to the next. All derivatives of
one order are many numbers, and modes differ in how many passes they take for them.
"""

import numpy as np
import sympy as sp

import symad as sa


def f(x):
    """Return a function of one variable."""
    return np.exp(np.sin(x)) * x


def fields(x):
    """Return two results of five variables."""
    return np.stack([np.exp(x[0] * x[1]) * np.sin(x[2]), np.sum(x**2) ** 2 * x[4] / x[3]])


example_args = (0.7,)


def nested(modes, function):
    """Return the derivative whose order is the number of modes, the last of them innermost."""
    for mode in reversed(modes):
        function = {"F": sa.derivative, "R": sa.grad}[mode](function)
    return function


def operations(function, *args):
    """Return how many operations the graph of a function has."""
    return sa.trace(function, *args).count_ops()


def one_direction(x):
    """Compare the derivatives of orders 1 to 8 by four ways with SymPy's, and their operations."""
    symbol = sp.Symbol("x")
    formula = sp.exp(sp.sin(symbol)) * symbol
    print("order  operations: forward  reverse  alternating  Taylor   value")
    for order in range(1, 9):
        formula = sp.diff(formula, symbol)
        ways = [nested(modes[:order], f) for modes in ("F" * 8, "R" * 8, "FR" * 4)]
        ways.append(lambda x, order=order: sa.partials(f, order, along=1.0, mode="taylor")(x))
        expected = float(formula.subs(symbol, sp.Rational(x)).evalf(30))
        for way in ways:
            np.testing.assert_allclose(way(x), expected, rtol=1e-12)
        counts = [operations(way, x) for way in ways]
        print(f"{order:5}  {counts[0]:19}  {counts[1]:7}  {counts[2]:11}  {counts[3]:6}   {expected:.12g}")


def all_directions(x):
    """Compare passes: n or m for the Jacobian, n (n + 1) / 2 or m n for all second derivatives."""
    columns = np.stack([sa.jvp(fields, (x,), (unit,))[1] for unit in np.eye(5)], axis=1)
    rows = np.stack([sa.vjp(fields, x)[1](unit)[0] for unit in np.eye(2)])
    np.testing.assert_allclose(columns, rows, rtol=1e-13)
    print(f"Jacobian: {columns.shape[1]} forward passes or {rows.shape[0]} backward passes")

    forward, mixed = sa.jacfwd(sa.jacfwd(fields))(x), sa.jacfwd(sa.jacrev(fields))(x)
    np.testing.assert_allclose(forward, mixed, rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(sa.taylor(fields, (x,), None, 2).parts[2], mixed, rtol=1e-12, atol=1e-12)
    print(f"second derivatives: {mixed.size} numbers; by symmetry {2 * 5 * 6 // 2} of them are different")


def from_directions():
    """Solve for all derivatives of one order from Taylor polynomials in several directions."""
    point = np.array([0.3, -0.4, 0.5])
    print("order  directions  condition number  error from it")
    conditions = []
    for order in (2, 4, 6, 8):
        found = sa.partials(lambda x: np.exp(x[0] * x[1] + np.sin(x[2])), order, mode="interpolation")(point)
        conditions.append(found.condition)
        print(f"{order:5}  {len(found.directions):10}  {found.condition:16.3g}  {found.error:13.1e}")
        np.testing.assert_allclose(found.interpolated, found.exact, rtol=1e-9, atol=1e-9)
    assert np.all(np.diff(conditions) > 0)


def main():
    """Take one direction, then all of them, then a few to find all."""
    one_direction(*example_args)
    all_directions(np.array([0.3, 0.7, -0.2, 1.1, 0.5]))
    from_directions()


if __name__ == "__main__":
    main()
