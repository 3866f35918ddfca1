# %% [markdown]
# # The Hessian three ways, and what each costs
#
# A Hessian has $n^2$ entries, those off the diagonal in equal pairs. Three ways lead to it: push columns through the
# gradient, push pairs of directions through the function, or carry the symmetric matrix through the program edge by
# edge. All give the same numbers. They do not need the same number of operations.

# %%
import numpy as np

import symad as sa


# %%
def valley(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def potential(x):
    return 1 / np.linalg.norm(x)


point = np.linspace(-1.0, 1.0, 8)

# %% [markdown] workbench="f: (1 - x)^2 + 100 (y - x^2)^2; take: jvp-grad; see: formula, stages"
# ## First way: columns, forward over reverse
#
# The gradient is a program with $n$ results; its Jacobian is the Hessian. One pushforward of $e_j$ through the
# gradient gives column $j$. Each costs a small multiple of the function, so all of them about $n$ times that.

# %%
gradient = sa.grad(valley)
columns = np.stack([sa.jvp(gradient, (point,), (e,))[1] for e in np.eye(8)], axis=1)
assert np.allclose(columns, sa.hessian(valley, mode="fwd-rev")(point), rtol=1e-13)

# %% [markdown] workbench="f: (1 - x)^2 + 100 (y - x^2)^2; take: hessian; see: formula, expansion"
# ## Second way: pairs of directions, forward over forward
#
# Two epsilons, along $e_i$ and $e_j$: the mixed term is one entry. There are $n(n+1)/2$ pairs.


# %%
def entry(i, j):
    along = lambda x, k: sa.jvp(valley, (x,), (np.eye(8)[k],))[1]  # noqa: E731
    return sa.jvp(lambda x: along(x, i), (point,), (np.eye(8)[j],))[1]


assert np.isclose(entry(2, 3), columns[2, 3], rtol=1e-13)
assert np.isclose(entry(3, 3), columns[3, 3], rtol=1e-13)

# %% [markdown] workbench="f: (1 - x)^2 + 100 (y - x^2)^2; take: hessian; see: formula, stages, graph"
# ## Third way: edge pushing
#
# The Hessian of a program can be pulled back as a symmetric matrix, from the result to the inputs, one line at a time
# (Gower and Mello 2012). Each line replaces its row and column by those of its operands, and adds its own second
# derivative. Symmetry is used at every line, and entries that are zero are never there.

# %%
assert np.allclose(sa.hessian(valley, mode="edge")(point), columns, rtol=1e-13)

# %% [markdown]
# ## The bill
#
# Operations of the whole Hessian, counted on the graph, each common subexpression once:


# %%
def operations(f, mode, n):
    return sa.trace(sa.hessian(f, mode=mode), np.ones(n)).count_ops()


modes = ("fwd-fwd", "fwd-rev", "edge")
bills = {f.__name__: {mode: operations(f, mode, 16) for mode in modes} for f in (valley, potential)}
for name, bill in bills.items():
    print(name, bill)
    assert bill["edge"] < min(bill["fwd-rev"], bill["fwd-fwd"])
assert bills["potential"]["fwd-rev"] < bills["potential"]["fwd-fwd"] / 2

# %% [markdown]
# How do they grow? In `valley` each variable meets two others, so its Hessian has about $3n$ entries; structural zeros
# cost nothing, and every way grows in proportion to $n$. In `potential` every variable meets every other: $n^2$
# entries.

# %%
for mode in modes:
    sparse, dense = ([operations(f, mode, n) for n in (8, 16, 32)] for f in (valley, potential))
    print(f"{mode:8} valley {sparse}, potential {dense}")
    assert sparse[2] < 2.5 * sparse[1]
    assert dense[2] > 2.5 * dense[1]

# %% [markdown]
# `mode="auto"` counts, and takes the cheapest; `choices` shows what it counted.

# %%
with sa.choices() as made:
    chosen = sa.hessian(valley)(point)
assert made[0].operations[made[0].chosen] == min(made[0].operations.values())
assert np.allclose(chosen, columns, rtol=1e-13)
print(made[0])

# %% [markdown] workbench="f: 1/sqrt(x^2 + y^2 + z^2); at: x=1, y=2, z=2; take: hessian; see: formula, routes"
# ## The same numbers?
#
# `compare` takes every route that there is to a derivative, and measures each against the exact numbers: its error in
# units of the last place (ULP), and its operations.

# %%
routes = sa.compare(potential, np.array([1.0, 2.0, 2.0]), 2, only=["sympy", "AD", "differences"], times=False)
assert {routes[f"AD {mode}"].verdict for mode in ("FF", "FR", "RR", "edge")} <= {"proved", "tested"}
assert routes["AD edge"].ulp < 4
assert routes["differences central"].ulp > 1e6
routes

# %% [markdown]
# ## The pattern
#
# Edge pushing finds where the Hessian can be non-zero, exactly, so a large sparse one is never formed as a square of
# numbers.

# %%
large = sa.compile(sa.hessian(valley, sparse="lower"), np.ones(500))
rows, columns_of_entries = large.sparsity  # of entries
assert len(rows) == 2 * 500 - 1
assert set(rows - columns_of_entries) == {0, 1}  # the diagonal, and the one below it
assert large(np.ones(500)).shape == (2 * 500 - 1,)

# %%
sa.spy(valley, np.ones(12), order=2)

# %% [markdown] workbench="f: 1/sqrt(x^2 + y^2 + z^2); at: x=1, y=2, z=2; take: jvp-grad; see: formula, program"
# ## Often no Hessian is needed
#
# An iterative solver asks for $Hv$ only: one pushforward through the gradient, whatever $n$ is. The curvature
# $v^{\mathsf T} H v$ along a direction is cheaper still: one Taylor polynomial of order two.

# %%
direction = np.cos(point)
assert np.allclose(sa.hvp(valley, (point,), (direction,)), columns @ direction, rtol=1e-12)
assert np.isclose(sa.partials(valley, 2, along=direction)(point), direction @ columns @ direction, rtol=1e-12)
for n in (8, 32, 64):
    product = sa.trace(lambda x: sa.hvp(potential, (x,), (np.ones_like(x),)), np.ones(n)).count_ops()
    print(f"n = {n}: {product} operations for H v, {operations(potential, 'edge', n)} for H")
    assert product < 10 * n

# %% [markdown]
# ## Exercises
#
# **1.** The entry $H_{xy}$ of $x^2 y^3$, as the mixed term of two levels.

# %%
tried = sa.check_expansion(
    "x^2 y^3 + 2 x y^3 eps_1 + 3 x^2 y^2 eps_2 + 3 x^2 y^2 eps_1 eps_2", "x^2 y^3", ["x", "y"], [[1, 0], [0, 1]]
)
assert tried.right is False
tried

# %% [markdown]
# **2.** The entry $H_{xx}$ of the same function: both levels along $(1, 0)$.

# %%
tried = sa.check_expansion(
    "x^2 y^3 + 2 x y^3 eps_1 + 2 x y^3 eps_2 + y^3 eps_1 eps_2", "x^2 y^3", ["x", "y"], [[1, 0], [1, 0]]
)
assert tried.right is False
tried

# %% [markdown]
# **3.** The second derivative of $\log(1 + e^x)$, the softplus function.

# %%
tried = sa.check_derivative("exp(x)/(1 + exp(x))", "log(1 + exp(x))", "x", order=2)
assert tried.right is False
tried

# %% [markdown]
# ### Solutions
#
# To 1: the derivative in $y$ is $3x^2y^2$, and that of this one in $x$ is $6xy^2$: the mixed term.
#
# To 2: the second derivative in $x$ is $2y^3$. In the square of $x + \varepsilon_1 + \varepsilon_2$ the product of the
# epsilons occurs twice.
#
# To 3: the first derivative is $e^x/(1 + e^x)$. The quotient rule gives $e^x(1 + e^x) - e^x e^x$ over the square of the
# denominator, and $e^x$ is left above.

# %%
mixed = "x^2 y^3 + 2 x y^3 eps_1 + 3 x^2 y^2 eps_2 + 6 x y^2 eps_1 eps_2"
assert sa.check_expansion(mixed, "x^2 y^3", ["x", "y"], [[1, 0], [0, 1]]).right
straight = "x^2 y^3 + 2 x y^3 eps_1 + 2 x y^3 eps_2 + 2 y^3 eps_1 eps_2"
assert sa.check_expansion(straight, "x^2 y^3", ["x", "y"], [[1, 0], [1, 0]]).right
assert sa.check_derivative("exp(x)/(1 + exp(x))^2", "log(1 + exp(x))", "x", order=2).right

# %% [markdown]
# ## Five exercises
#
# Their derivations and answers are in `sheet.solutions`. Another seed gives other numbers.

# %%
sheet = sa.worksheet(["Hessians", "gradients"], seed=5, count=5)
sheet
