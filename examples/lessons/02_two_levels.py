# %% [markdown]
# # Two levels and the mixed term
#
# A second derivative is the derivative of a derivative: forward mode inside forward mode. Each of the two has its own
# $\varepsilon$. Where both meet, in the coefficient of $\varepsilon_1\varepsilon_2$, is the second derivative.

# %%
import numpy as np
import sympy as sp

import symad as sa

x, y, v, w, u = sp.symbols("x y v w u", real=True)

# %% [markdown] workbench="f: x^3; take: grad-grad; see: expansion"
# ## One level after the other
#
# Level 1 turns $f(x)$ into $f(x) + f'(x)v\,\varepsilon_1$: a program that computes two things. Level 2 moves $x$ in
# that program by $w\,\varepsilon_2$, and moves both things. The rules of the epsilons are
# $\varepsilon_1^2 = \varepsilon_2^2 = 0$ and $\varepsilon_1\varepsilon_2 \neq 0$.

# %%
cube = sa.expand(x**3, x, [v, w])
assert cube.coefficients == {(): x**3, (1,): 3 * v * x**2, (2,): 3 * w * x**2, (1, 2): 6 * v * w * x}
cube

# %% [markdown] workbench="f: x^3; take: grad-grad; see: formula, stages"
# ## Nested and expanded
#
# A machine holds a pair of pairs, $(a + b\,\varepsilon_1) + (c + d\,\varepsilon_1)\,\varepsilon_2$. Multiplied out,
# the four numbers are the value, one tangent for each level, and the mixed term.

# %%
assert cube.coefficient(1, 2) == sp.diff(x**3, x, 2) * v * w
cube.nested

# %% [markdown] workbench="f: exp(2x); take: derivative; k: 2; see: formula, expansion"
# ## The factor of two
#
# Let both levels have the same direction. The coefficient of $\varepsilon_1\varepsilon_2$ is $f''$. In Taylor's series
# the coefficient of $t^2$ is $\tfrac12 f''$. Both are right:
# $(\varepsilon_1 + \varepsilon_2)^2 = 2\,\varepsilon_1\varepsilon_2$, so the half of Taylor's series and this two
# cancel.

# %%
straight = sa.expand(sp.exp(2 * x), x, 1, order=2)
assert straight.coefficient(1, 2) == sp.diff(sp.exp(2 * x), x, 2) == 4 * sp.exp(2 * x)
assert straight.taylor()[2] == 2 * sp.exp(2 * x)
straight.taylor()

# %% [markdown] workbench="f: x^2 sin(y); at: x=2, y=0.5; take: hessian; see: formula, expansion"
# ## An entry of the Hessian
#
# With several variables, level 1 along $e_i$ and level 2 along $e_j$ give $\partial^2 f / \partial x_i \partial x_j$.
# The order of the two levels does not matter: where the second derivatives are continuous, the Hessian is symmetric.


# %%
def energy(q):
    return q[0] ** 2 * np.sin(q[1])


point, (first, second) = np.array([2.0, 0.5]), np.eye(2)
mixed = sa.expand(energy, point, [first, second]).coefficient(1, 2)
assert mixed == sa.expand(energy, point, [second, first]).coefficient(1, 2)
assert np.isclose(mixed, sa.hessian(energy)(point)[0, 1], rtol=1e-15)
assert np.isclose(mixed, 2 * 2.0 * np.cos(0.5), rtol=1e-15)

# %% [markdown] workbench="f: sin(x^2); take: grad-grad; see: expansion, graph"
# ## Where the mixed term comes from
#
# In a product there are two ways to get $\varepsilon_1\varepsilon_2$: one factor brings $\varepsilon_1$ and the other
# $\varepsilon_2$, or one factor brings both. For $\sin(g)$ there are two terms as well: the second derivative of the
# sine times both slopes of $g$, and the slope of the sine times the second derivative of $g$. With an undefined $g$
# this is Faà di Bruno's formula of order 2.

# %%
g = sp.Function("g")
outer = sa.expand(sp.sin(g(x)), x, [v, w])
once, twice = g(x).diff(x), g(x).diff(x, 2)
expected = v * w * (-sp.sin(g(x)) * once**2 + sp.cos(g(x)) * twice)
assert sp.expand(outer.coefficient(1, 2) - expected) == 0
outer

# %% [markdown]
# ## A curved path
#
# The argument may carry a mixed term of its own:
# $x + \varepsilon_1 v + \varepsilon_2 w + \varepsilon_1\varepsilon_2 u$, the path that an inner computation has made.
# Then $f'(x)\,u$ is added. This is what lets programs be composed.

# %%
curved = sa.expand(x**3, x, {(1,): v, (2,): w, (1, 2): u})
assert sp.expand(curved.coefficient(1, 2) - (6 * x * v * w + 3 * x**2 * u)) == 0
curved

# %% [markdown] workbench="f: exp(x sin(x)); take: derivative; k: 3; see: formula, program"
# ## What it costs
#
# Each level doubles the number of coefficients: $2^n$ of them for $n$ levels. Along one direction only $n + 1$ are
# different, and a Taylor polynomial carries just those. Three levels of $\exp(x \sin x)$ have eight coefficients:

# %%
third = sa.expand(sp.exp(x * sp.sin(x)), x, 1, order=3)
assert len(third.coefficients) == 2**3
assert len(third.taylor()) == 3 + 1
assert sp.simplify(third.coefficient(1, 2, 3) - sp.diff(sp.exp(x * sp.sin(x)), x, 3)) == 0

# %%
nested = sa.trace(sa.derivative(lambda t: np.exp(t * np.sin(t)), order=10), 1.0).count_ops()
polynomial = sa.trace(lambda t: sa.taylor(lambda s: np.exp(s * np.sin(s)), (t,), (1.0,), 10), 1.0).count_ops()
assert polynomial < nested
print(f"order 10: {nested} operations by nesting, {polynomial} by a Taylor polynomial")

# %% [markdown]
# ## Exercises
#
# The answers are wrong; find out where, and put them right.
#
# **1.** Expand $x^2$ at $x + v\,\varepsilon_1 + w\,\varepsilon_2$.

# %%
tried = sa.check_expansion("x^2 + 2 x v eps_1 + 2 x w eps_2", "x^2", "x", ["v", "w"])
assert tried.right is False
assert tried.mistakes[0].kind == "dropped mixed term"
tried

# %% [markdown]
# **2.** Expand $x\,y$ along $(1, 0)$ on level 1 and $(0, 1)$ on level 2.

# %%
tried = sa.check_expansion("x y + y eps_1 + x eps_2 + 2 eps_1 eps_2", "x y", ["x", "y"], [[1, 0], [0, 1]])
assert tried.right is False
tried

# %% [markdown]
# **3.** The second derivative of $e^{x^2}$.

# %%
tried = sa.check_derivative("4 x^2 exp(x^2)", "exp(x^2)", "x", order=2)
assert tried.right is False
tried

# %% [markdown]
# **4.** Expand $\sin x$ at 0 along 1 on both levels. (What is left of the mixed term?)

# %%
tried = sa.check_expansion("eps_1 + eps_2 - eps_1 eps_2", "sin(x)", {"x": 0}, [1, 1])
assert tried.right is False
tried

# %% [markdown]
# ### Solutions
#
# To 1: the square has the terms $2xv\,\varepsilon_1$ and $2xw\,\varepsilon_2$, and $2vw\,\varepsilon_1\varepsilon_2$
# too: only the squares of the epsilons are 0.
#
# To 2: $(x + \varepsilon_1)(y + \varepsilon_2)$ has the product of the epsilons once.
#
# To 3: the first derivative is $2x\,e^{x^2}$. By the product rule the second one is
# $2\,e^{x^2} + 2x \cdot 2x\,e^{x^2}$, and that is $(2 + 4x^2)\,e^{x^2}$.
#
# To 4: the mixed term is the second derivative at 0, $-\sin 0$, and that is 0. So $\varepsilon_1 + \varepsilon_2$ is
# left.

# %%
assert sa.check_expansion("x^2 + 2 x v eps_1 + 2 x w eps_2 + 2 v w eps_1 eps_2", "x^2", "x", ["v", "w"]).right
assert sa.check_expansion("x y + y eps_1 + x eps_2 + eps_1 eps_2", "x y", ["x", "y"], [[1, 0], [0, 1]]).right
assert sa.check_derivative("(2 + 4 x^2) exp(x^2)", "exp(x^2)", "x", order=2).right
assert sa.check_expansion("eps_1 + eps_2", "sin(x)", {"x": 0}, [1, 1]).right

# %% [markdown]
# ## Five exercises
#
# Their derivations and answers are in `sheet.solutions`. Another seed gives other numbers.

# %%
sheet = sa.worksheet(["two levels of dual numbers", "second derivatives"], seed=2, count=5)
sheet
