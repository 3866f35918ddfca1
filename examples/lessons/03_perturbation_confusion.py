# %% [markdown]
# # Perturbation confusion
#
# A derivative inside a function that is differentiated itself: two perturbations are alive at the same time. If a
# system cannot tell them apart, it gives a wrong number, and no error. This lesson shows four ways to get it wrong,
# each a few lines of honest code, and the line in which each goes wrong.

# %%
import math

import numpy as np

import symad as sa
from symad.classroom.confusion import naive
from symad.classroom.confusion.exhibit import exhibit

# %% [markdown]
# ## Three lines of mathematics
#
# Let $D(f, a)$ be $f'(a)$. What is $D(x \mapsto x \cdot D(y \mapsto x + y,\; 1),\; 1)$? The inner function has slope
# 1, whatever $x$ is. What remains is $x \cdot 1$, so the answer is 1. The program is a function of the operator $D$,
# so that it can be run with any design of it.


# %%
def program(d):
    return d(lambda x: x * d(lambda y: x + y, 1.0), 1.0)


assert program(lambda f, a: sa.derivative(f)(a)) == 1.0
assert program(naive.tagless()) == 2.0  # dual numbers, as in lesson 1

# %% [markdown]
# ## Where it went wrong
#
# The outer derivative makes $x = 1 + \varepsilon$, the inner one $y = 1 + \varepsilon$. With the same $\varepsilon$
# for both, $x + y = 2 + 2\varepsilon$. The inner derivative reads off 2: it took the perturbation of $x$, which
# belongs to the outer one, for its own. With $\varepsilon_1$ and $\varepsilon_2$ it reads off 1.

# %%
shown = exhibit("siskind-pearlmutter")
assert [run.result for run in shown.wrong] == [2.0, 1.0, 1.0]
assert shown.first_wrong("no tag").seen.slope == 2.0
assert shown.right.result == shown.reverse.result == 1.0
shown

# %% [markdown] workbench="f: x; at: x=3; take: grad-grad; see: confusion"
# ## A tag is not enough
#
# Now the inner derivative is taken at $y = x$. For a system that works on expressions, $x$ and $y$ may become *the
# same variable*: then $x \cdot y$ is $x^2$ and its derivative $2x$, although $x$ is a constant for the inner
# derivative. The parameter of a level must be a variable of its own, equal in value to the argument and never the
# same: an *alias*.

# %%
same_point = exhibit("same-point")
assert [run.result for run in same_point.wrong] == [9.0, 6.0, 12.0]
assert same_point.right.result == 6.0  # the derivative of x * x
same_point

# %% [markdown] workbench="f: x^2; at: x=3; take: grad-grad; see: stages, graph"
# `explain` shows the aliases in symad's own program: parameters of two levels, marked A1 and A2.

# %%
levels = sa.explain(sa.derivative(lambda x: x * sa.derivative(lambda y: x * y)(x)), 3.0)
assert len(levels.levels) == 2
assert "A2" in levels.text()
levels

# %% [markdown]
# ## The amazing bug
#
# A tag for each derivative is still not enough, if a derivative is a *function*. Let $S$ be the derivative of
# $u \mapsto (g \mapsto (a \mapsto g(a + u)))$ at $u = 3$: it takes a function $g$ and gives its derivative, shifted by
# 3. Applied twice to $\exp$ it gives the second derivative shifted by 6. A design that made one tag for $S$ uses it
# twice, and the second use meets the epsilon of the first. The right design makes a fresh one *for each use*.

# %%
amazing = exhibit("amazing-bug")
assert [run.result for run in amazing.wrong[:2]] == [0.0, 0.0]
assert math.isclose(amazing.right.result, math.exp(5 + 6))
amazing

# %% [markdown]
# ## Reverse mode has its own confusion
#
# A tape records operations, and a backward sweep adds to adjoints. If two levels share one tape, the inner sweep
# leaves an adjoint on the outer variable, empties the tape, and the outer derivative is what happens to be left over.

# %%
captured = exhibit("captured")
assert (captured.tape.result, captured.right.result) == (1.0, 8.0)
assert captured.first_wrong("one tape").seen.slope == 0.0
captured

# %% [markdown] workbench="f: x^3; at: x=4; take: grad-grad; see: routes"
# ## Every mix of modes
#
# Forward or reverse mode for the inner derivative, forward or reverse mode for the outer one: with levels that are
# kept apart there is nothing to switch and nothing to confuse. All four are 8.

# %%
modes = {"forward": sa.derivative, "reverse": sa.grad}
values = {
    f"{outer} over {inner}": modes[outer](lambda x, once=modes[inner]: x * once(lambda y: x * y)(1.0))(4.0)
    for outer in modes
    for inner in modes
}
assert set(values.values()) == {8.0}
print(values)

# %% [markdown] workbench="f: sin(x); at: x=0.5; take: grad-grad; see: confusion"
# ## A program of your own
#
# The exhibit takes any nested program of numbers. Here $\frac{d}{dx}\left[x \cdot \frac{d}{dy} \sin(xy)\right]_{y=2}$.

# %%
own = exhibit(lambda d: d(lambda x: x * d(lambda y: np.sin(x * y), 2.0), 0.5))
assert math.isclose(own.right.result, 2 * 0.5 * math.cos(1) - 2 * 0.5**2 * math.sin(1))
assert own.wrong[0].result != own.right.result
own

# %% [markdown]
# ## Exercises
#
# The answers below are those of designs that confuse.
#
# **1.** Two levels are open at $x = y = 1$: the outer one moves $x$, the inner one moves $y$. What is $x + y$?

# %%
tried = sa.check_expansion("2 + 2 eps", "x + y", {"x": 1, "y": 1}, [[1, 0], [0, 1]])
assert tried.right is False
assert tried.mistakes[0].kind == "confused levels"
tried

# %% [markdown]
# **2.** Now $y$ is taken at $x$, both at 3: the outer level moves both of them, the inner one moves $y$ alone. What is
# $x \cdot y$? (The exhibit above has it in the column on the right.)

# %%
tried = sa.check_expansion("9 + 6 eps_1 + 6 eps_2 + 2 eps_1 eps_2", "x y", {"x": 3, "y": 3}, [[1, 1], [0, 1]])
assert tried.right is False
tried

# %% [markdown]
# **3.** $\frac{d}{dx}\left[x \cdot \frac{d}{dy}(x y^2)\right]_{y = x}$. The bracket is $x \cdot 2xy = 2x^3$ there.
# This pupil works without alias: $y$ is $x$, so $x y^2$ is $x^3$.

# %%
tried = sa.check_derivative("9 x^2", "2 x^3", "x")
assert tried.right is False
assert exhibit("same-point-square").wrong[2].result == 9 * 3.0**2
tried

# %% [markdown]
# **4.** $\frac{d}{dx}\left[\frac{d}{dy}\, y\,(x - y)\right]_{y = x}$. The bracket is $x - 2y$, so $-x$ there.

# %%
tried = sa.check_derivative("0", "-x", "x")
assert tried.right is False
tried

# %% [markdown]
# ### Solutions
#
# To 1: $(1 + \varepsilon_1) + (1 + \varepsilon_2)$ is $2 + \varepsilon_1 + \varepsilon_2$: two names, two epsilons.
#
# To 2: $x$ is $3 + \varepsilon_1$, and $y$ is $3 + \varepsilon_1 + \varepsilon_2$. Their product is
# $9 + 6\,\varepsilon_1 + 3\,\varepsilon_2 + \varepsilon_1\varepsilon_2$, because the square of $\varepsilon_1$ is 0.
#
# To 3: the bracket $2x^3$ has the derivative $6x^2$. Where $y$ is $x$, the inner derivative of $x^3$ is $3x^2$: too
# large.
#
# To 4: the derivative of $-x$ is $-1$.

# %%
assert sa.check_expansion("2 + eps_1 + eps_2", "x + y", {"x": 1, "y": 1}, [[1, 0], [0, 1]]).right
solution = "9 + 6 eps_1 + 3 eps_2 + eps_1 eps_2"
assert sa.check_expansion(solution, "x y", {"x": 3, "y": 3}, [[1, 1], [0, 1]]).right
assert sa.check_derivative("6 x^2", "2 x^3", "x").right
assert sa.check_derivative("-1", "-x", "x").right

# %% [markdown]
# ## Five exercises
#
# Their derivations and answers are in `sheet.solutions`. Another seed gives other numbers.

# %%
sheet = sa.worksheet(["mixed partial derivatives", "two levels of dual numbers"], seed=3, count=5)
sheet
