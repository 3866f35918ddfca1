# %% [markdown]
# # Reverse mode as a transpose
#
# The derivative of a program at a point is a linear map. Forward mode applies it to a tangent. Reverse mode applies
# its *transpose* to a cotangent. Nothing else is new: no second set of rules, no tape to design.

# %%
import numpy as np

import symad as sa

# %% [markdown] workbench="f: sin(x) x; at: x=2; take: jacfwd; see: formula, stages"
# ## The linear map of a program
#
# Take $f(x) = \sin(x)\,x$ as two lines: $a = \sin x$, $b = a\,x$. Each line has its partial derivatives:
#
# $\dot a = \cos(x)\,\dot x$, and $\dot b = x\,\dot a + a\,\dot x$.
#
# The coefficients $\cos x$, $x$ and $a$ are computed from the original program: they are its *residuals*. The dots are
# linear in $\dot x$, and that is all that there is to forward mode.


# %%
def f(x):
    return np.sin(x) * x


value, pushforward = sa.linearize(f, 2.0)
assert pushforward(1.0) == sa.derivative(f)(2.0)
assert np.isclose(pushforward(3.0), 3 * pushforward(1.0), rtol=1e-15)  # linear

# %% [markdown] workbench="f: sin(x) x; at: x=2; take: grad; see: stages, graph"
# ## Edges, reversed
#
# Draw an arrow from each dot to the lines that use it, with the coefficient on it. Forward mode follows the arrows.
# Reverse mode follows them backwards: $\bar a = x\,\bar b$, and $\bar x = a\,\bar b + \cos(x)\,\bar a$. Where a value
# is used twice, two arrows leave it, so two terms are added: fan-out becomes a sum. The coefficients stay the same.
#
# `explain` shows the program, its linear part, and the transpose, with every variable marked.

# %%
stages = sa.explain(sa.grad(f), 2.0)
assert stages.count()["residual"] > 0
assert stages.count()["cotangent"] > 0
assert stages.count()["tangent"] == 0  # nothing of forward mode is left
stages

# %% [markdown] workbench="f: sin(x) x; at: x=2; take: grad; see: graph, program"
# The whole gradient as a graph: residuals (R) are computed once and used by both halves, cotangents (C) run back to
# $x$.

# %%
picture = sa.draw(sa.grad(f), 2.0)
assert picture.operations == sa.trace(sa.grad(f), 2.0).count_ops()
picture

# %% [markdown]
# ## The test of a transpose
#
# A matrix $J$ and its transpose satisfy $\langle w, Jv \rangle = \langle J^{\mathsf T} w, v \rangle$ for all $v$ and
# $w$. `jvp` computes $Jv$, `vjp` computes $J^{\mathsf T} w$, and neither forms $J$.


# %%
def spread(q):
    return np.stack([q[0] * q[1], np.exp(q[2]), q[0] + q[2] ** 2, np.sin(q[1] * q[2])])


rng = np.random.default_rng(0)
point, tangent, cotangent = rng.normal(size=3), rng.normal(size=3), rng.normal(size=4)
_, pushed = sa.jvp(spread, (point,), (tangent,))
_, pullback = sa.vjp(spread, point)
(pulled,) = pullback(cotangent)
assert np.isclose(cotangent @ pushed, pulled @ tangent, rtol=1e-14)
print(cotangent @ pushed, pulled @ tangent)

# %% [markdown]
# ## Columns and rows
#
# A pushforward of $e_j$ is column $j$ of the Jacobian, a pullback of $e_i$ is row $i$.

# %%
jacobian = sa.jacobian(spread)(point)
columns = np.stack([sa.jvp(spread, (point,), (e,))[1] for e in np.eye(3)], axis=1)
rows = np.stack([pullback(e)[0] for e in np.eye(4)])
assert np.allclose(columns, jacobian, rtol=1e-14, atol=0)
assert np.allclose(rows, jacobian, rtol=1e-14, atol=0)
print(jacobian)

# %% [markdown]
# ## What it is good for
#
# A scalar function has a Jacobian of one row: its gradient. One pullback gives all of it, whatever the number of
# variables. Count the operations of the gradient in units of the function:


# %%
def chain(q):
    return np.sum(100 * (q[1:] - q[:-1] ** 2) ** 2 + (1 - q[:-1]) ** 2)


def ratio(transform, n):
    return sa.trace(transform(chain), np.ones(n)).count_ops() / sa.trace(chain, np.ones(n)).count_ops()


for n in (5, 20, 80):
    print(f"n = {n}: the gradient takes {ratio(sa.grad, n):.2f} times the operations of the function")
    assert ratio(sa.grad, n) < 4

# %% [markdown] workbench="f: x y z w; take: grad; see: formula, graph, program"
# The product of all variables is the classical case: by the product rule each of the $n$ partial derivatives is a
# product of $n - 1$ factors, about $n^2$ multiplications. Reverse mode needs about $3n$.

# %%
for n in (5, 20, 80):
    gradient = sa.trace(sa.grad(lambda q: np.prod(q)), np.ones(n)).count_ops()
    print(f"n = {n}: {gradient} multiplications, by the product rule {n * (n - 2)}")
    assert gradient <= 3 * n

# %% [markdown] workbench="f: x^2 y; take: grad-grad; see: formula, stages"
# ## The transpose of the transpose
#
# ... is the map itself, so forward mode can be had from two reversals. And because a transposed program is a program,
# it can be linearized again: reverse mode over reverse mode is the Hessian.

# %%
twice = sa.vjp(lambda c: pullback(c)[0], cotangent)[1]
assert np.allclose(twice(tangent)[0], pushed, rtol=1e-14)
hessian = sa.jacobian(sa.grad(lambda q: spread(q).sum()), mode="rev")(point)
assert np.allclose(hessian, hessian.T, rtol=1e-14)
assert np.allclose(hessian, sa.hessian(lambda q: spread(q).sum())(point), rtol=1e-13)

# %% [markdown]
# ## A gradient has no gradient
#
# The pullback needs a cotangent of the shape of the result. For a scalar that is a number, and 1 is the natural one.
# For a vector there is no natural one, and symad refuses to invent it.

# %%
try:
    sa.grad(spread)(point)
except sa.errors.ArgumentError as error:
    print(error)
else:
    raise AssertionError("the gradient of a vector was accepted")

# %% [markdown]
# ## Exercises
#
# **1.** Transpose by hand: $a = \sin x$, $b = a\,x$, with $\bar b = 1$. What is $\bar x$?

# %%
tried = sa.check_derivative("x cos(x)", "x sin(x)", "x")  # one of the two arrows into x was forgotten
assert tried.right is False
tried

# %% [markdown]
# **2.** Transpose $a = x^2$, $b = a + a\,x$ with $\bar b = 1$: $a$ is used twice.

# %%
tried = sa.check_derivative("x^2 + 2 x", "x^2 + x^2 x", "x")  # only the first use of a was counted
assert tried.right is False
tried

# %% [markdown]
# **3.** $f(x, y) = x^2 y$. Push the tangent $(v, w)$ forward at $(x, y)$.

# %%
tried = sa.check_expansion("x^2 y + 2 x v eps_1 + x^2 w eps_1", "x^2 y", ["x", "y"], [["v", "w"]])
assert tried.right is False
tried

# %% [markdown]
# **4.** The gradient of $x^2 y$ at $(3, 5)$ is $(30, 9)$. What is the tangent along $(1, -1)$?

# %%
tried = sa.check_expansion("45 + 39 eps_1", "x^2 y", {"x": 3, "y": 5}, [[1, -1]])
assert tried.right is False
tried

# %% [markdown]
# ### Solutions
#
# To 1: $\bar a$ is $x$. Two arrows lead into $x$: they bring $a$ and $\bar a \cos x$, so $\sin x + x \cos x$.
#
# To 2: $\bar a$ is $1 + x$, one part for each use of $a$. The arrows into $x$ bring $a$ and $\bar a \cdot 2x$: together
# $2x + 3x^2$.
#
# To 3: each partial derivative times the tangent of its variable, $2xy\,v + x^2\,w$.
#
# To 4: the tangent is $30 \cdot 1 - 9 \cdot 1$, that is 21; the value is 45.

# %%
assert sa.check_derivative("sin(x) + x cos(x)", "x sin(x)", "x").right
assert sa.check_derivative("2 x + 3 x^2", "x^2 + x^2 x", "x").right
assert sa.check_expansion("x^2 y + (2 x y v + x^2 w) eps_1", "x^2 y", ["x", "y"], [["v", "w"]]).right
assert sa.check_expansion("45 + 21 eps_1", "x^2 y", {"x": 3, "y": 5}, [[1, -1]]).right

# %% [markdown]
# ## Five exercises
#
# Their derivations and answers are in `sheet.solutions`. Another seed gives other numbers.

# %%
sheet = sa.worksheet(["reverse traces", "forward traces"], seed=4, count=5)
sheet
