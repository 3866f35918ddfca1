# %% [markdown]
# # Implicit differentiation
#
# Many functions have no formula: the root of an equation, a fixed point, the place of a minimum. A solver finds them
# by iterating. Their derivatives need no iteration at all; they follow from the equation that the solution satisfies.

# %%
import numpy as np
import sympy as sp

import symad as sa

# %% [markdown]
# ## The implicit function theorem
#
# Let $g(x, y(x)) = 0$ for all $x$. The derivative of zero is zero: $g_x + g_y\,y' = 0$, so $y' = -g_x / g_y$ wherever
# $g_y \neq 0$. For $y^3 + y = x$ at $x = 2$ the root is $y = 1$, and $y' = 1/(3y^2 + 1) = 1/4$.


# %%
def root_of(x):
    return sa.root(lambda y: y**3 + y - x, 1.0)  # 1.0 is where the solver starts


assert np.isclose(root_of(2.0), 1.0, rtol=1e-14)
assert np.isclose(sa.derivative(root_of)(2.0), 1 / 4, rtol=1e-14)
assert np.isclose(sa.grad(root_of)(2.0), 1 / 4, rtol=1e-14)

# %% [markdown] workbench="f: 1/(3y^2 + 1); at: y=1; take: derivative; k: 1; see: formula, expansion"
# ## Again and again
#
# The formula $1/(3y^2 + 1)$ contains $y$, which has that derivative itself. So it can be differentiated again, as
# often as one likes. SymPy does it on paper; symad, in numbers, at every order.

# %%
y = sp.Symbol("y")
first = 1 / (3 * y**2 + 1)
second = sp.simplify(sp.diff(first, y) * first)
third = sp.simplify(sp.diff(second, y) * first)
on_paper = [float(formula.subs(y, 1)) for formula in (first, second, third)]
assert on_paper == [1 / 4, -3 / 32, 21 / 256]
assert np.allclose([sa.derivative(root_of, order=k)(2.0) for k in (1, 2, 3)], on_paper, rtol=1e-13)
print(second, third)

# %% [markdown]
# ## The solver does not matter
#
# Newton's method is a program; it can be differentiated step by step. It gives the same derivative, once it has
# converged: each step of the derivative's own iteration trails the value. But it computes a derivative of every step,
# and keeps all of them for a reverse sweep.


# %%
def newton(x, steps):
    y = 1.5
    for _ in range(steps):
        y = y - (y**3 + y - x) / (3 * y**2 + 1)
    return y


for steps in (1, 2, 3, 4, 6):
    off = abs(newton(2.0, steps) - 1), abs(sa.derivative(lambda x, n=steps: newton(x, n))(2.0) - 1 / 4)
    print(f"{steps} steps: value off by {off[0]:.1e}, derivative by {off[1]:.1e}")
assert max(off) < 1e-14

# %% [markdown]
# Bisection finds the root too, but its program compares and halves: where $x$ moves a little, the same halves are
# taken, and the unrolled derivative is 0. The equation still knows the answer.


# %%
def bisection(x):
    low, high = 0.0, 4.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if middle**3 + middle > x else (middle, high)
    return middle


assert np.isclose(bisection(2.0), 1.0, rtol=1e-14)
assert sa.derivative(bisection)(2.0) == 0.0  # the derivative of the program, not of the root
assert np.isclose(sa.derivative(root_of)(2.0), 1 / 4)

# %% [markdown]
# ## Fixed points
#
# $y = \phi(x, y)$ is $g = y - \phi = 0$, so $y' = \phi_x / (1 - \phi_y)$. For $y = \cos(xy)$ at $x = 1$:

# %%
settled = sa.fixed_point(lambda y: np.cos(1.0 * y), 1.0)
assert np.isclose(settled, 0.7390851332151607, rtol=1e-14)
slope = sa.derivative(lambda x: sa.fixed_point(lambda y: np.cos(x * y), 1.0))(1.0)
by_hand = -np.sin(settled) * settled / (1 + np.sin(settled))
assert np.isclose(slope, by_hand, rtol=1e-13)
print(slope)

# %% [markdown]
# ## Minima
#
# At a minimum the gradient vanishes: $\nabla_y f(x, y) = 0$ is the equation, so its matrix $g_y$ is the Hessian. This
# is how one differentiates through an optimiser, whatever optimiser it was. Here: ridge regression, whose solution is
# known.

# %%
data, target = np.array([[1.0, 2.0], [3.0, 1.0], [0.5, 1.5]]), np.array([1.0, 2.0, 0.5])


def weights(penalty):
    loss = lambda w: np.sum((data @ w - target) ** 2) + penalty * np.sum(w**2)  # noqa: E731
    return sa.argmin(loss, np.zeros(2))


normal = data.T @ data + 0.3 * np.eye(2)
solution = np.linalg.solve(normal, data.T @ target)
assert np.allclose(weights(0.3), solution, rtol=1e-12)
assert np.allclose(sa.derivative(weights)(0.3), -np.linalg.solve(normal, solution), rtol=1e-11)

# %% [markdown] workbench="f: sqrt(x); at: x=0.01; take: derivative; k: 1; see: formula, errors"
# ## Where it ends
#
# The theorem asks for $g_y \neq 0$. For $y^2 = x$ at $x = 0$ there is no derivative, and the honest number is
# infinite. And a solver that did not converge gives no solution to differentiate: that is an error, not a number.

# %%
try:
    sa.root(lambda y: y**2 + 1, 1.0)
except sa.errors.ConvergenceError as error:
    print(error)
else:
    raise AssertionError("a root was found where there is none")

# %% [markdown]
# ## Exercises
#
# **1.** $y^2 = x$ with $y > 0$, so $y = \sqrt{x}$. Implicit differentiation gives $2y\,y' = 1$. What is $y'$ in $x$?

# %%
tried = sa.check_derivative("1/(2 x)", "sqrt(x)", "x")
assert tried.right is False
tried

# %% [markdown]
# **2.** $e^y = 1 + x^2$. What is $y'$ in $x$?

# %%
tried = sa.check_derivative("1/(1 + x^2)", "log(1 + x^2)", "x")  # where is the derivative of the right side?
assert tried.right is False
tried

# %% [markdown]
# **3.** $y'' $ of $y^2 = x$: differentiate $2y\,y' = 1$ once more. Careful, $y'$ is squared.

# %%
tried = sa.check_derivative("1/(4 x^(3/2))", "sqrt(x)", "x", order=2)
assert tried.right is False
tried

# %% [markdown]
# **4.** The residual $g = y^3 + y - x$ at $x = 2 + \varepsilon$, $y = 1 + \tfrac12\varepsilon$. If $y$ moved the right
# way, $g$ would stay 0.

# %%
tried = sa.check_expansion("1/2 eps_1", "y^3 + y - x", {"x": 2, "y": 1}, [[1, sp.Rational(1, 2)]])
assert tried.right is False
tried

# %% [markdown]
# ### Solutions
#
# To 1: $y'$ is $1/(2y)$, and $y$ is $\sqrt{x}$.
#
# To 2: the derivative of the left side is $e^y\,y'$, that of the right side is $2x$. So $y'$ is $2x$ over $1 + x^2$.
#
# To 3: once more differentiated, $2y'^2 + 2y\,y''$ is 0. So $y''$ is $-y'^2/y$, which is $-1/(4x\sqrt{x})$.
#
# To 4: $g$ moves by $(3y^2 + 1)\,\tfrac12 - 1$ times $\varepsilon$, which is 1. It stays 0 if $y$ moves by a quarter.

# %%
assert sa.check_derivative("1/(2 sqrt(x))", "sqrt(x)", "x").right
assert sa.check_derivative("2 x/(1 + x^2)", "log(1 + x^2)", "x").right
assert sa.check_derivative("-1/(4 x^(3/2))", "sqrt(x)", "x", order=2).right
assert sa.check_expansion("eps_1", "y^3 + y - x", {"x": 2, "y": 1}, [[1, sp.Rational(1, 2)]]).right
assert sa.check_expansion("0", "y^3 + y - x", {"x": 2, "y": 1}, [[1, sp.Rational(1, 4)]]).right  # the right way

# %% [markdown]
# ## Five exercises
#
# Their derivations and answers are in `sheet.solutions`. Another seed gives other numbers.

# %%
sheet = sa.worksheet(["implicit equations", "second derivatives of equations"], seed=7, count=5)
sheet
