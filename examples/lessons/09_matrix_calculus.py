# %% [markdown]
# # Matrix calculus
#
# A network, a likelihood, a filter: their operations work on whole matrices. So do their derivatives. Three rules are
# enough: one for products, one for inverses, one for determinants. All of them follow from $AB$ and from
# $A A^{-1} = I$.

# %%
import numpy as np

import symad as sa

random = np.random.default_rng(9)


def inner(first, second):
    return np.sum(first * second)  # of two matrices, entry by entry: $\mathrm{tr}(F^T S)$


# %% [markdown]
# ## Products
#
# The product rule, with the order kept: $\mathrm{d}(AX) = \mathrm{d}A\,X + A\,\mathrm{d}X$. That is the pushforward,
# two products of matrices. No entry has to be looked at.

# %%
a, x = random.normal(size=(3, 4)), random.normal(size=(4, 2))
da, dx = random.normal(size=a.shape), random.normal(size=x.shape)
value, tangent = sa.jvp(lambda a, x: a @ x, (a, x), (da, dx))
assert np.allclose(value, a @ x)
assert np.allclose(tangent, da @ x + a @ dx)

# %% [markdown]
# Reverse mode asks: how much does $\langle \bar Y, AX \rangle$ change, for given weights $\bar Y$? A factor moves to
# the other side as its transpose: $\langle \bar Y, A\,\mathrm{d}X \rangle = \langle A^T \bar Y, \mathrm{d}X \rangle$.
# So the pullback is $\bar X = A^T \bar Y$ and $\bar A = \bar Y X^T$. The shapes leave no other choice.

# %%
_, pullback = sa.vjp(lambda a, x: a @ x, a, x)
weights = random.normal(size=(3, 2))
a_bar, x_bar = pullback(weights)
assert np.allclose(a_bar, weights @ x.T)
assert np.allclose(x_bar, a.T @ weights)
assert np.isclose(inner(weights, tangent), inner(a_bar, da) + inner(x_bar, dx))  # one map, and its transpose

# %% [markdown]
# ## A network of two layers
#
# $f(U, V) = \lVert \tanh(XU)\,V - Y \rVert^2$. Compiled, the gradient is the forward pass, and then the same products
# again with a factor transposed: $\bar Z = 2(HV - Y)$, $\bar V = H^T \bar Z$, $\bar H = \bar Z V^T$, and so on. Read
# the lines, or look at the picture: each product is one box.

# %%
data, target = random.normal(size=(256, 64)), random.normal(size=(256, 10))


def loss(u, v):
    hidden = np.tanh(data @ u)
    return np.sum((hidden @ v - target) ** 2)


u, v = random.normal(size=(64, 40)) / 8, random.normal(size=(40, 10)) / 6
kernel = sa.compile(sa.grad(loss, argnums=(0, 1)), u, v)
drawn = sa.draw(kernel)
print(drawn)

# %%
hidden = np.tanh(data @ u)
z_bar = 2 * (hidden @ v - target)
u_bar, v_bar = kernel(u, v)
assert np.allclose(v_bar, hidden.T @ z_bar)
assert np.allclose(u_bar, data.T @ ((z_bar @ v.T) * (1 - hidden**2)))
assert str(drawn).count("product(") == 5  # two forward, three backward: nobody asked for the data's cotangent
drawn

# %% [markdown] workbench="f: 1/a; at: a=2; take: derivative; k: 1; see: formula, expansion"
# ## Inverses
#
# Differentiate $A A^{-1} = I$: $\mathrm{d}A\,A^{-1} + A\,\mathrm{d}(A^{-1}) = 0$, so
# $\mathrm{d}(A^{-1}) = -A^{-1}\,\mathrm{d}A\,A^{-1}$. Nobody forms an inverse for that. If $Ax = b$, then
# $A\,\mathrm{d}x = \mathrm{d}b - \mathrm{d}A\,x$: the tangent solves the same system with another right-hand side.
# And the cotangents: $\bar b$ solves $A^T \bar b = \bar x$, and $\bar A = -\bar b\,x^T$.

# %%
n = 300
square = random.normal(size=(n, n)) + n * np.eye(n)
side, d_square, d_side = random.normal(size=n), random.normal(size=(n, n)), random.normal(size=n)
solution, tangent = sa.jvp(np.linalg.solve, (square, side), (d_square, d_side))
assert np.allclose(tangent, np.linalg.solve(square, d_side - d_square @ solution))

_, pullback = sa.vjp(np.linalg.solve, square, side)
weights = random.normal(size=n)
square_bar, side_bar = pullback(weights)
assert np.allclose(side_bar, np.linalg.solve(square.T, weights))
assert np.allclose(square_bar, -np.outer(side_bar, solution))

# %% [markdown]
# The compiled kernel says it in its own words: a solution forward, one with the transposed matrix backward.

# %%
drawn = sa.draw(sa.compile(sa.grad(lambda a, b: np.sum(np.linalg.solve(a, b) ** 2)), square, side))
assert "solve(a[0:90000].T" in str(drawn)
print(drawn)

# %% [markdown] workbench="f: log(a d - b c); at: a=2, b=0.5, c=1, d=3; take: grad; see: formula, graph"
# ## Determinants
#
# Jacobi's formula: $\mathrm{d} \log \det A = \mathrm{tr}(A^{-1}\,\mathrm{d}A)$. So the gradient of $\log\det$ is
# $A^{-T}$, and that of $\det$ is $\det A$ times as much. Likelihoods of Gaussians consist of this and of a solution.

# %%
assert np.allclose(sa.grad(lambda a: np.linalg.slogdet(a)[1])(square), np.linalg.inv(square).T)
assert np.allclose(sa.grad(np.linalg.det)(a @ a.T), np.linalg.det(a @ a.T) * np.linalg.inv(a @ a.T).T)

# %% [markdown]
# ## Cholesky
#
# $A = L L^T$ gives $\mathrm{d}A = \mathrm{d}L\,L^T + L\,\mathrm{d}L^T$. Multiply by $L^{-1}$ and $L^{-T}$: the lower
# triangular matrix $L^{-1}\mathrm{d}L$ and its transpose add up to $S = L^{-1}\,\mathrm{d}A\,L^{-T}$. So
# $L^{-1}\mathrm{d}L$ is the lower half of $S$, with half of its diagonal: $\mathrm{d}L = L\,\Phi(S)$.

# %%
positive = square @ square.T
d_positive = d_square + d_square.T
factor, tangent = sa.jvp(np.linalg.cholesky, (positive,), (d_positive,))
inverse = np.linalg.inv(factor)
s = inverse @ d_positive @ inverse.T
assert np.allclose(tangent, factor @ (np.tril(s) - np.diag(np.diag(s)) / 2))

# %% [markdown]
# All of this is differentiated again as it stands: the derivative of a product is two products, that of a solution a
# solution. The Hessian of a likelihood of 200 points in two parameters calls the same few routines.

# %%
points = np.linspace(0, 1, 200)
seen = np.sin(6 * points) + 0.1 * random.normal(size=200)


def likelihood(p):
    covariance = np.exp(p[0] - ((points[:, None] - points) / 0.3) ** 2) + np.exp(p[1]) * np.eye(200)
    return seen @ np.linalg.solve(covariance, seen) + np.linalg.slogdet(covariance)[1]


p = np.array([0.1, -2.0])
gradient, hessian = sa.compile(sa.grad(likelihood), p), sa.compile(sa.hessian(likelihood), p)
step = 1e-5 * np.eye(2)
columns = [(gradient(p + each) - gradient(p - each)) / 2e-5 for each in step]
assert np.allclose(hessian(p), columns, rtol=1e-6)
print(hessian(p))

# %% [markdown]
# ## Exercises
#
# Capital letters are matrices, small ones columns. The answers are compared on random matrices.
#
# **1.** The gradient of $x^T A x$ in $x$; $A$ need not be symmetric.

# %%
tried = sa.check_derivative("2 A x", "x^T A x", "x")
assert tried.right is False
tried

# %% [markdown]
# **2.** $\mathrm{d}(X^{-1})$. Matrices do not commute.

# %%
tried = sa.check_derivative("-X^{-2} dX", "X^{-1}", "X")
assert tried.right is False
tried

# %% [markdown]
# **3.** The gradient of $\lVert Ax - b \rVert^2$ in $x$. Look at the shapes.

# %%
tried = sa.check_derivative("2 (A x - b)", "‖A x - b‖^2", "x")
assert tried.right is False
tried

# %% [markdown]
# ### Solutions
#
# To 1: the differential is $\mathrm{d}x^T A x + x^T A\,\mathrm{d}x$. Both terms are numbers, and the first one is
# $x^T A^T\,\mathrm{d}x$. So the gradient is $(A + A^T)\,x$.
#
# To 2: the differential of $X X^{-1}$ is 0. That of the inverse is $-X^{-1}\,\mathrm{d}X\,X^{-1}$, in this order.
#
# To 3: with $r$ for $Ax - b$ the differential is $2\,r^T A\,\mathrm{d}x$. So the gradient is $2 A^T (Ax - b)$.

# %%
assert sa.check_derivative("(A + A^T) x", "x^T A x", "x").right
assert sa.check_derivative("-X^{-1} dX X^{-1}", "X^{-1}", "X").right
assert sa.check_derivative("2 A^T (A x - b)", "‖A x - b‖^2", "x").right

# %% [markdown]
# ## Five exercises
#
# Their derivations and answers are in `sheet.solutions`. Another seed gives other numbers.

# %%
sheet = sa.worksheet(["traces and determinants", "vectors and matrices"], seed=9, count=5)
sheet
