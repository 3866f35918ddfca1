# %% [markdown]
# # Symbolic swell, and the graph that does not
#
# A formula written on one line is a tree: what is used twice is written twice. The product rule and the chain rule
# use everything again, so written-out derivatives grow with a speed that has a name, *expression swell*. Automatic
# differentiation never writes them out. It works on a graph in which each value is computed once.

# %%
import numpy as np
import sympy as sp

import symad as sa

x = sp.Symbol("x", real=True)

# %% [markdown]
# ## A tower
#
# Take $e_0 = x$ and $e_{k+1} = \sin(e_k)\,e_k$. As a program that is one sine and one product for each storey. As a
# formula, each storey contains the one below twice.


# %%
def tower(e, storeys):
    for _ in range(storeys):
        e = np.sin(e) * e
    return e


def formula(storeys):
    e = x
    for _ in range(storeys):
        e = sp.sin(e) * e
    return e


for storeys in (2, 4, 8):
    tree, graph = sp.count_ops(formula(storeys)), sa.trace(lambda t, n=storeys: tower(t, n), 1.0).count_ops()
    print(f"storeys {storeys}: {tree} operations as a formula, {graph} as a graph")
    assert graph == 2 * storeys
    assert tree >= 2**storeys

# %% [markdown] workbench="f: sin(sin(x) x) sin(x) x; take: value; see: graph, program"
# Two storeys as they are written, and as they are computed. A heavy border marks a value that is used several times.

# %%
picture = sa.draw(lambda x: tower(x, 2), 1.0, sharing="both")
assert (picture.tree_operations, picture.operations) == (6, 4)
picture

# %% [markdown] workbench="f: sin(sin(x) x) sin(x) x; take: grad; see: formula, program"
# ## Its derivative
#
# By the product rule and the chain rule $e_{k+1}' = (\cos(e_k)\,e_k + \sin(e_k))\,e_k'$. On the graph that is seven
# operations for each storey. Written out it outgrows even the formula, which has $2^{n+1} - 2$ operations for $n$
# storeys.


# %%
def sizes(storeys):
    written = sp.count_ops(sp.diff(formula(storeys), x))
    graph = sa.trace(sa.derivative(lambda t: tower(t, storeys)), 1.0).count_ops()
    return written, graph


table = {storeys: sizes(storeys) for storeys in (1, 2, 3, 4, 5, 6, 7)}
for storeys, (written, graph) in table.items():
    print(f"storeys {storeys}: {written:6} written out, {graph:3} on the graph")
    assert written >= storeys * (2 ** (storeys + 1) - 2)
assert table[7][0] > 100 * table[7][1]
assert all(table[k + 1][1] == table[k][1] + 7 for k in range(1, 7))

# %% [markdown]
# Twenty-five storeys are an ordinary program. Written out, its derivative would have more than $2^{25}$ operations.

# %%
kernel = sa.compile(sa.derivative(lambda t: tower(t, 25)), 1.0)
assert kernel.stats.operations_before > 2**25
assert kernel.stats.operations_after < 200
assert np.isclose(kernel(0.9), (tower(0.9 + 1e-6, 25) - tower(0.9 - 1e-6, 25)) / 2e-6, rtol=1e-6)
print(f"{kernel.stats.operations_before:.1e} operations written out, {kernel.stats.operations_after} computed")

# %% [markdown]
# ## Sharing after the fact
#
# `sympy.cse` finds common subexpressions in a formula that was written out, and gives a *let form*: names for the
# shared parts, and the rest in terms of them. It helps, but the swell has to be there first. A trace is a let form
# from the start, of the same kind.

# %%
replacements, (reduced,) = sa.trace(sa.derivative(lambda t: tower(t, 2)), 1.0).let()
for name, part in replacements:
    print(name, "=", part)
print("result:", reduced)
written_out = reduced
for name, part in reversed(replacements):
    written_out = written_out.subs(name, part)
(symbol,) = written_out.free_symbols
assert sp.simplify(written_out.subs(symbol, x) - sp.diff(formula(2), x)) == 0

# %% [markdown] workbench="f: x y z u v; take: grad; see: formula, graph, program"
# ## Many variables
#
# The product $x_1 x_2 \cdots x_n$: each partial derivative is a product of all the others. Written out they have
# $n(n - 2)$ multiplications together. On the graph the products from the left and from the right are shared.

# %%
for n in (5, 10, 20):
    symbols = sp.symbols(f"x:{n}")
    written = sum(sp.count_ops(sp.diff(sp.prod(symbols), symbol)) for symbol in symbols)
    graph = sa.trace(sa.grad(lambda q: np.prod(q)), np.ones(n)).count_ops()
    print(f"n = {n}: {written} written out, {graph} on the graph")
    assert written == n * (n - 2)
    assert graph <= 3 * n

# %% [markdown] workbench="f: sin(sin(sin(x))); at: x=1; take: derivative; k: 4; see: program, routes"
# ## Higher orders
#
# Every order differentiates the one before it, so all ways grow; but what the orders have in common is on the graph
# once. A Taylor polynomial along one direction carries one number for each order and line. It costs more at first, and
# wins at high orders, where its work grows like the square of the order.

# %%
grown = sa.growth(lambda t: np.sin(np.sin(np.sin(t))), 1.0, orders=8)
counts = {way: row[8] for way, row in grown.counts.items()}
assert counts["AD tree"] > 100 * counts["AD graph"]
assert counts["sympy.diff tree"] > 2 * counts["AD graph"]
assert counts["AD graph"] > counts["Taylor graph"]
grown

# %% [markdown] workbench="f: arctan(x) + arctan(1/x); take: derivative; k: 1; see: formula, errors"
# ## When symbols win
#
# Simplification is not differentiation, and only symbols simplify. The sum $\arctan x + \arctan \frac1x$ is constant
# for $x > 0$, so its derivative is zero. SymPy proves it; the graph computes it as it is written, and finds a rounding
# error.

# %%
positive = sp.Symbol("x", positive=True)
assert sp.simplify(sp.diff(sp.atan(positive) + sp.atan(1 / positive), positive)) == 0
almost = sa.derivative(lambda t: np.arctan(t) + np.arctan(1 / t))
values = np.array([almost(t) for t in (0.3, 0.7, 1.7, 2.3, 3.1)])
assert np.all(np.abs(values) < 1e-15)
assert np.any(values != 0)
print(values)

# %% [markdown]
# ## Exercises
#
# An answer need not be written out in one piece, nor in the form that a computer finds: the check compares values.
#
# **1.** The derivative of one storey, $\sin(x)\,x$.

# %%
tried = sa.check_derivative("cos(x)", "sin(x) x", "x")
assert tried.right is False
tried

# %% [markdown]
# **2.** The derivative of $\sin(s)\,s$ where $s = x^2$.

# %%
tried = sa.check_derivative("cos(x^2) x^2 + sin(x^2)", "sin(x^2) x^2", "x")  # the chain rule was forgotten
assert tried.right is False
tried

# %% [markdown]
# **3.** The derivative of $x\,e^x \sin x$: three factors, three terms.

# %%
tried = sa.check_derivative("e^x sin(x) + x e^x cos(x)", "x exp(x) sin(x)", "x")
assert tried.right is False
tried

# %% [markdown]
# ### Solutions
#
# To 1: the product rule gives $\cos x \cdot x$ and $\sin x \cdot 1$.
#
# To 2: $(\cos s \cdot s + \sin s)$ times the derivative of $s = x^2$, which is $2x$.
#
# To 3: one term for each factor: $e^x \sin x + x\,e^x \sin x + x\,e^x \cos x$.

# %%
assert sa.check_derivative("x cos(x) + sin(x)", "sin(x) x", "x").right
assert sa.check_derivative("2 x (cos(x^2) x^2 + sin(x^2))", "sin(x^2) x^2", "x").right
assert sa.check_derivative("exp(x) (sin(x) + x sin(x) + x cos(x))", "x exp(x) sin(x)", "x").right

# %% [markdown]
# ## Five exercises
#
# Their derivations and answers are in `sheet.solutions`. Another seed gives other numbers.

# %%
sheet = sa.worksheet(["products and chains", "chains of three functions"], seed=6, count=5)
sheet
