# %% [markdown]
# # Dual numbers
#
# A dual number is $a + b\,\varepsilon$ with a new symbol $\varepsilon$ whose square is zero: $\varepsilon^2 = 0$, and
# $\varepsilon \neq 0$. Computing with such numbers gives a function and its derivative at once, in one pass, with no
# step size and no formula for the derivative.

# %%
import numpy as np
import sympy as sp

import symad as sa
from symad.classroom.comparison.compare import step_errors

# %% [markdown]
# ## The arithmetic
#
# Sums are added part by part. In a product one term disappears, because it has $\varepsilon^2$ in it:
# $(a + b\,\varepsilon)(c + d\,\varepsilon) = ac + (ad + bc)\,\varepsilon$. That is the product rule, and nobody wrote
# it down.


# %%
class Dual:
    def __init__(self, value, slope):
        self.value, self.slope = value, slope

    def __add__(self, other):
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other):
        return Dual(self.value * other.value, self.value * other.slope + self.slope * other.value)


# %% [markdown] workbench="f: x^3 + x; at: x=2; take: derivative; k: 1; see: formula, expansion"
# Put $x + 1\,\varepsilon$ in, and any program made of sums and products gives $f(x) + f'(x)\,\varepsilon$. For
# $f(x) = x^3 + x$ at 2 the value is 10 and the derivative is $3 \cdot 4 + 1 = 13$.


# %%
def cubic(x):
    return x * x * x + x


result = cubic(Dual(2.0, 1.0))
assert (result.value, result.slope) == (10.0, 13.0)
assert sa.derivative(cubic)(2.0) == 13.0

# %% [markdown] workbench="f: x^3; take: derivative; k: 1; see: expansion"
# ## Why it works
#
# Taylor's theorem says $f(x + h) = f(x) + f'(x)\,h + \tfrac12 f''(x)\,h^2 + \dots$ With $h = v\,\varepsilon$ the
# series ends after two terms, exactly: $f(x + v\,\varepsilon) = f(x) + f'(x)\,v\,\varepsilon$. The coefficient of
# $\varepsilon$ is the derivative of $f$ in the direction $v$, its *tangent*.

# %%
x, v = sp.symbols("x v", real=True)
cube = sa.expand(x**3, x, [v])
assert cube.coefficient(1) == 3 * x**2 * v
cube

# %% [markdown] workbench="f: exp(x sin(x)); take: derivative; k: 1; see: expansion, graph"
# Every elementary function brings one rule, its partial derivative; the rest is arithmetic. The chain rule appears by
# itself, line by line: each line is a value and a tangent made from the values and tangents above it.

# %%
wave = sa.expand(sp.exp(x * sp.sin(x)), x, [v])
assert sp.simplify(wave.coefficient(1) - v * sp.diff(sp.exp(x * sp.sin(x)), x)) == 0
wave

# %% [markdown]
# The rule does not ask what the function is. With an undefined $g$ the same lines show the general chain rule.

# %%
g = sp.Function("g")
chain = sa.expand(sp.sin(g(x)), x, [v])
assert sp.simplify(chain.coefficient(1) - v * sp.cos(g(x)) * g(x).diff(x)) == 0
chain

# %% [markdown] workbench="f: sin(x); at: x=0.5; take: derivative; k: 1; see: formula, routes"
# ## Not a small number
#
# A difference quotient takes a small $h$ and throws $h^2$ away although it is there. A large step leaves that error
# in; a small step lets rounding in. The best of all steps loses half of the digits. A dual number has no step, and
# neither of the two errors.

# %%
exact = float(sp.cos(sp.Rational(1, 2)).evalf(30))
steps = 10.0 ** -np.arange(1, 16)
errors = np.abs((np.sin(0.5 + steps) - np.sin(0.5)) / steps - exact)
best = errors.min()
assert 1e-11 < best < 1e-7
assert errors[0] > 1e-3  # too large a step
assert errors[-1] > 1e-3  # too small a step
assert abs(sa.derivative(np.sin)(0.5) - exact) < 2e-16
print(f"best quotient: {best:.1e}")

# %% [markdown]
# Drawn over the step, the error of a quotient is a V. A complex step $\operatorname{Im} f(x + ih)/h$ subtracts
# nothing, and is as good as a dual number: $i h$ with a tiny $h$ is nearly one, because $h^2$ is rounded away.

# %%
curve = step_errors(np.sin, 0.5, 1)
assert min(curve.errors["forward"]) > 1e-11
assert min(curve.errors["complex step"]) < 1e-15
curve

# %% [markdown] workbench="f: x^2 sin(y); at: x=2, y=0.5; take: grad; see: formula, expansion"
# ## Several variables
#
# For a vector, $\mathbf x + \varepsilon\,\mathbf v$ moves all variables at once along one direction. The coefficient
# of $\varepsilon$ is the *directional derivative* $\nabla f \cdot \mathbf v$, the sum over all variables, for a small
# multiple of the price of one evaluation. `jvp` computes it with numbers.


# %%
def energy(q):
    return q[0] ** 2 * np.sin(q[1])


point, direction = np.array([2.0, 0.5]), np.array([1.0, -3.0])
value, tangent = sa.jvp(energy, (point,), (direction,))
assert np.isclose(tangent, sa.grad(energy)(point) @ direction, rtol=1e-15)
sa.expand(energy, point, [direction])

# %% [markdown]
# One direction is one pass, so a gradient of $n$ variables takes $n$ passes this way. That is what reverse mode is
# for: lesson 4. And a derivative inside a derivative needs a second $\varepsilon$: lessons 2 and 3.

# %% [markdown]
# ## One epsilon is not enough for two derivatives
#
# Move $x$ twice with the same $\varepsilon$: $(x + \varepsilon + \varepsilon)^3$ is $(x + 2\varepsilon)^3$, and that is
# $x^3 + 6x^2\,\varepsilon$. The second derivative would stand at $\varepsilon \cdot \varepsilon$, and that is 0: it is
# struck. With two epsilons, each with its own square 0, the product $\varepsilon_1 \varepsilon_2$ is not 0, and the
# second derivative $6x$ is its coefficient.

# %%
lost = sa.expand(x**3, x, [2])
both = sa.expand(x**3, x, [1, 1])
assert lost.coefficient(1) == 6 * x**2
assert both.coefficient(1, 2) == 6 * x
both

# %% [markdown]
# ## Exercises
#
# Each answer below is a pupil's, and wrong. Read what the check says, and put it right. Solutions are at the end.
#
# **1.** Expand $f(x + \varepsilon)$ for $f(x) = x^3$.

# %%
tried = sa.check_expansion("x^3 + 3 x^2 eps_1 + 3 x eps_1^2", "x^3", "x", [1])
assert tried.right is False
assert tried.mistakes[0].kind == "squared epsilon"
tried

# %% [markdown]
# **2.** The derivative of $\sin(x^2)$.

# %%
tried = sa.check_derivative("cos(x^2)", "sin(x^2)", "x")
assert tried.right is False
assert tried.mistakes[0].kind == "chain rule"
tried

# %% [markdown]
# **3.** Expand $\frac{1}{1 + x}$ at $x + v\,\varepsilon$.

# %%
tried = sa.check_expansion("1/(1 + x) + v eps_1/(1 + x)^2", "1/(1 + x)", "x", ["v"])
assert tried.right is False
tried

# %% [markdown]
# **4.** Expand $x\,y$ at $x = 2, y = 5$ along the direction $(1, 3)$.

# %%
tried = sa.check_expansion("10 + 6 eps_1", "x y", {"x": 2, "y": 5}, [[1, 3]])
assert tried.right is False
tried

# %% [markdown]
# ### Solutions
#
# To 1: $(x + \varepsilon)^3$ multiplied out is $x^3 + 3x^2\,\varepsilon + 3x\,\varepsilon^2 + \varepsilon^3$, and
# $\varepsilon^2 = 0$ strikes the last two terms.
#
# To 2: the outer function is the sine, the inner one is $x^2$. The derivative is $\cos(x^2) \cdot 2x$.
#
# To 3: above and below times $1 + x - v\,\varepsilon$. Below, $(1 + x)^2$ is left; the tangent is $-v/(1 + x)^2$.
#
# To 4: $(2 + \varepsilon)(5 + 3\,\varepsilon)$ is $10 + (2 \cdot 3 + 5)\,\varepsilon$, and that is
# $10 + 11\,\varepsilon$.

# %%
assert sa.check_expansion("x^3 + 3 x^2 eps_1", "x^3", "x", [1]).right
assert sa.check_derivative("2 x cos(x^2)", "sin(x^2)", "x").right
assert sa.check_expansion("1/(1 + x) - v eps_1/(1 + x)^2", "1/(1 + x)", "x", ["v"]).right
assert sa.check_expansion("10 + 11 eps_1", "x y", {"x": 2, "y": 5}, [[1, 3]]).right

# %% [markdown]
# ## Five exercises
#
# Their derivations and answers are in `sheet.solutions`. Another seed gives other numbers.

# %%
sheet = sa.worksheet(["dual numbers"], seed=1, count=5)
sheet
