# %% [markdown]
# # From a formula to machine code
#
# One derivative on its way down: formula, graph, program, LLVM IR, assembly, numbers. Nothing is hidden at any stage,
# and every stage can be checked against the one above it.

# %%
import numpy as np
import sympy as sp

import symad as sa
from symad.classroom.code_reading.machine_code import read_assembly, read_llvm


# %%
def bump(x):
    return x * np.exp(-(x**2))


x = sp.Symbol("x", real=True)
formula = sp.diff(x * sp.exp(-(x**2)), x)
assert sp.expand(formula - (1 - 2 * x**2) * sp.exp(-(x**2))) == 0

# %% [markdown] workbench="f: x exp(-x^2); at: x=0.5; take: derivative; k: 1; see: formula, graph"
# ## The graph
#
# Tracing runs the function on symbols and records each operation once. The derivative is written on the same graph, so
# that it shares the exponential. The let form is that graph as text.

# %%
trace = sa.trace(sa.derivative(bump), 0.5)
replacements, (result,) = trace.let()
shared = dict(replacements)
assert sum(isinstance(part, sp.exp) for part in shared.values()) == 1
print(*(f"{name} = {part}" for name, part in replacements), f"result: {result}", sep="\n")

# %% [markdown] workbench="f: x exp(-x^2); at: x=0.5; take: derivative; k: 1; see: program, code"
# ## The program
#
# Compiling strips the aliases of levels, keeps what the result needs, and turns heads such as `Pow` into what a
# processor can do. The statistics say how many operations there are, and of which kind.

# %%
kernel = sa.compile(sa.derivative(bump), 0.5)
print(kernel.stats.machine_operations, "of which fused:", kernel.stats.fused)
assert kernel.stats.machine_operations["call"] == 1  # one exponential, although it is used twice
assert "pow" not in kernel.stats.machine_operations  # the square is a product

# %% [markdown] workbench="f: x exp(-x^2); at: x=0.5; take: derivative; k: 1; see: graph, code"
# ## LLVM IR, line by line
#
# LLVM's language has registers `%4`, `%5`... that are set once. `fmul` is a product of two `double`s; a number such as
# `0x4000000000000000` is a `double` written bit by bit, here 2. `llvm.fma` multiplies and adds with a single rounding.
#
# The right column is not a comment. The lines are carried out on symbols, so it is what they compute; the last formula
# is compared with the derivative that SymPy finds.

# %%
code = read_llvm(kernel)
(stored,) = code.results
assert sp.expand(stored - formula) == 0
assert code.count()["exp"] == 1
assert code.count()["to memory"] == 1
code

# %% [markdown] workbench="f: x exp(-x^2); at: x=0.5; take: derivative; k: 1; see: code"
# ## Assembly, line by line
#
# LLVM chooses the instructions of the processor at hand, so this list looks different on another one. The kinds of
# lines are the same everywhere:
#
# - **arithmetic** on floating-point registers: `mulsd`, `addsd` on x86, `fmul`, `fadd` on ARM;
# - **fused multiply-add** where the processor has it;
# - **memory and registers**: arguments come in, the result goes out, the address of `exp` is fetched;
# - **call**: the exponential of the C library; what must survive it is saved on the **stack** before;
# - **return**: back to the caller.

# %%
assembly = read_assembly(kernel)
count = assembly.count()
assert count["call"] == 1
assert count["return"] == 1
assert count["arithmetic"] + count["fused multiply-add"] >= 3
assembly

# %% [markdown]
# The function alone has one exponential as well. Together the two need fewer operations than side by side, because
# what they share is computed once.

# %%
both = sa.compile(sa.value_and_grad(bump), 0.5)
alone = sa.compile(bump, 0.5)
assert both.stats.machine_operations["call"] == alone.stats.machine_operations["call"] == 1
assert both.stats.total < alone.stats.total + kernel.stats.total
print(f"bump {alone.stats.total} operations, derivative {kernel.stats.total}, both {both.stats.total}")

# %% [markdown] workbench="f: x exp(-x^2); at: x=0.5; take: derivative; k: 1; see: formula, errors, routes"
# ## Numbers
#
# The kernel is a Python callable on machine code. Compared with 50 digits it is off by a unit in the last place or two
# (ULP): the exponential of the C library is not exact, and every product rounds. Where $1 - 2x^2$ crosses zero, digits
# cancel; a relative error is large there in any formula, so the points below stay away from it.

# %%
points = np.linspace(-0.6, 0.6, 41)
reference = [sp.N(formula.subs(x, sp.Rational(float(point))), 50) for point in points]
values = [kernel(float(point)) for point in points]
pairs = zip(values, reference, strict=True)
ulp = [abs(float((sp.Float(value, 60) - exact) / np.spacing(abs(float(exact))))) for value, exact in pairs]
assert max(ulp) < 4
print(f"worst of {len(points)} points: {max(ulp):.2f} ULP")

# %% [markdown]
# The same graph can be read by a slow and careful interpreter; that is how `verify` checks any kernel.

# %%
assert sa.verify(kernel, points[0]).worst_ulp < 4

# %% [markdown] workbench="f: x exp(-x^2); at: x=0.5; take: derivative; k: 2; see: program, code"
# ## A second derivative
#
# is another program of the same kind: still one exponential.

# %%
curvature = sa.compile(sa.derivative(bump, order=2), 0.5)
second = read_llvm(curvature)
assert sp.expand(second.results[0] - sp.diff(formula, x)) == 0
assert second.count()["exp"] == 1
second

# %% [markdown]
# ## Exercises
#
# **1.** The function whose IR this is: `%5 = fmul %4, %4`, `%6 = call sin(%5)`, `store %6`. Its derivative?

# %%
tried = sa.check_derivative("cos(x^2)", "sin(x^2)", "x")
assert tried.right is False
tried

# %% [markdown]
# **2.** `%5 = call exp(%4)`, `%6 = fadd %5, 1`, `%7 = fdiv 1, %6`, `store %7`. Its derivative?

# %%
tried = sa.check_derivative("exp(x)/(1 + exp(x))^2", "1/(1 + exp(x))", "x")
assert tried.right is False
tried

# %% [markdown]
# **3.** `%5 = fma %4, %4, %4`, that is $x \cdot x + x$, and `%6 = call sqrt(%5)`, `store %6`. Its derivative?

# %%
tried = sa.check_derivative("1/(2 sqrt(x^2 + x))", "sqrt(x^2 + x)", "x")
assert tried.right is False
tried

# %% [markdown]
# ### Solutions
#
# To 1: the derivative of $\sin(x \cdot x)$ is $2x \cos(x^2)$.
#
# To 2: minus the derivative of the denominator over its square, $-e^x/(1 + e^x)^2$.
#
# To 3: the derivative of $x^2 + x$, which is $2x + 1$, over twice the root.
#
# Below, the check of each formula, and of the machine code that is compiled for the last one.

# %%
assert sa.check_derivative("2 x cos(x^2)", "sin(x^2)", "x").right
assert sa.check_derivative("-exp(x)/(1 + exp(x))^2", "1/(1 + exp(x))", "x").right
assert sa.check_derivative("(2 x + 1)/(2 sqrt(x^2 + x))", "sqrt(x^2 + x)", "x").right
(compiled,) = read_llvm(sa.compile(sa.derivative(lambda x: np.sqrt(x * x + x)), 0.5)).results
assert sp.simplify(compiled - (2 * x + 1) / (2 * sp.sqrt(x**2 + x))) == 0

# %% [markdown]
# ## Five exercises
#
# Their derivations and answers are in `sheet.solutions`. Another seed gives other numbers.

# %%
sheet = sa.worksheet(["forward traces", "directional derivatives"], seed=8, count=5)
sheet
