"""The forms of tests/support/arrays_fuzz.py: expressions and statements of NumPy, with gaps for names.

{A} is an array, {V} one of one axis, {M} one of two, {s} and {t} are numbers, {k} is a small integer, {x} an axis.
MASK(a), DATA(a), PLACES(a) and KERNEL(a) are data that fit an array: see `arrays_fuzz`.
"""

from __future__ import annotations

ELEMENTWISE = (
    "{A} * {B}", "{A} + {s}", "{A} - {B}", "np.sin({A}) * {s}", "{A} / (2 + {B} ** 2)", "np.exp(-({A} ** 2))",
    "np.tanh({A}) ** 2", "np.abs({A})", "np.maximum({A}, {s})", "np.minimum({A}, {B})", "np.hypot({A}, 1 + {B})",
    "np.where({A} > {s}, {A} * {B}, {t})", "np.where(MASK({A}), {A}, {B})", "np.clip({A}, -0.4, {s} ** 2)",
    "np.log1p({A} ** 2)", "np.sqrt(1 + {A} ** 2)", "np.cbrt(2 + np.sin({A}))", "np.arctan2({A}, 1.5 + {B} ** 2)",
    "np.sign({A}) * {B}", "(1 + {A} ** 2) ** {s}", "2.0 ** np.sin({A})", "{A} ** (np.arange({A}.shape[-1]) % 3)",
    "np.floor(3 * {A}) * {s}", "np.mod({A}, 0.7)", "({A} > {s}) * {B}", "np.heaviside({A}, 0.5)", "-{A}",
    "np.select([{A} > 0.5, {A} > 0], [{A} ** 2, {s} * {A}], default=-1.0)", "np.logaddexp({A}, {B})",
    "np.piecewise({A}, [{A} < 0, {A} >= 0.5], [lambda q: -q, lambda q: q ** 2, 0.25])", "{A} @ DATA({A}).T",
    "np.vectorize(lambda a, b: a * b if a > b else b)({A}, {s})", "np.copysign({A}, {s})", "np.fmod({A}, 0.6)",
    "np.interp({A}, [-1.0, 0.0, 1.5], [0.5, 0.0, 2.0])", "np.polyval([0.5, -1.0, 0.25], {A})", "np.nan_to_num({A})",
)  # fmt: skip
VIEWS = (
    "{A}[::-1]", "{A}[1:]", "{A}[::-2]", "{A}[..., ::-1]", "{A}.T", "{A}[..., None]", "{A}[None]", "{A}.ravel()",
    "{A}[-1:0:-1]", "{A}.reshape(-1)", "{A}.reshape(-1, 2)", "{A}.reshape(2, -1)[::-1]", "np.flip({A})",
    "np.moveaxis({A}, 0, -1)", "np.swapaxes({A}, 0, -1)[::-1]", "np.squeeze({A})", "np.atleast_2d({A})",
    "np.broadcast_to({A}, (2, *{A}.shape))", "np.diagonal({M})", "np.rot90({M})", "np.tril({M}, -1)", "np.triu({M})",
    "{A}[-2:]", "{A}[:0:-1]", "np.expand_dims({A}, -1)", "{V}[np.arange(len({V}))[::-2]]", "{M}[:, 0]", "{M}[-1]",
    "{M}[1:, ::-1]", "np.lib.stride_tricks.sliding_window_view({V}, 2)", "np.array_split({V}, 2)[0]",
)  # fmt: skip
FANCY = (
    "{A}[[0, 0, -1]]", "{A}[PLACES({A})]", "{A}[MASK({A})]", "{A}[..., [0, -1, 0]]", "np.take({A}, [1, 1, 0])",
    "{M}[[0, 1, 0], [-1, 0, -1]]", "{M}[np.ix_([0, -1], [0, 0])]", "{M}[[0, -1]][:, [-1, 0]]", "{M}[:, PLACES({M}.T)]",
    "np.compress([True, False, True], {A}.ravel())", "np.repeat({A}, 2, axis=0)", "np.repeat({V}, PLACES({V}))",
    "np.tile({A}, 2)", "np.roll({A}, {k})", "np.roll({A}, -1, axis={x})", "np.delete({V}, 0)", "np.insert({V}, 1, {s})",
    "np.concatenate([{A}, {A}[::-1]])", "np.stack([{A}, {A} * {s}], axis={x})", "np.append({V}, [{s}, {t}])",
    "np.pad({V}, 1, mode='reflect')", "np.pad({A}, 1, mode='edge')", "np.choose([0, 1, 0], [{V}[:3], {V}[-3:]])",
    "np.hstack([{s}, {V}])", "np.block([[{M}], [{M}]])", "np.unstack({M})[0]",
)  # fmt: skip
REDUCTIONS = (
    "np.sum({A}, axis={x})", "np.sum({A}, axis={x}, keepdims=True)", "np.sum({A}, where=MASK({A}))", "np.mean({A})",
    "np.mean({A}, axis={x}, keepdims=True)", "np.mean({A}, axis={x}, where=MASK({A}))", "np.prod(1 + 0.2 * {A})",
    "np.prod(np.tanh({A}), axis={x})", "np.max({A})", "np.max({A}, axis={x}, keepdims=True)", "np.min({A}, axis={x})",
    "np.max({A}, axis={x}, initial=0.1, where=MASK({A}))", "np.min({A}, initial={s}, where={A} > 0)", "np.ptp({A})",
    "np.var({A}, axis={x})", "np.std(DATA({A}) + 0.1 * {A})", "np.var({A}, ddof=1)", "np.cumsum({A})", "{A}.sum()",
    "np.cumsum({A}, axis={x})", "np.cumprod(np.tanh({A}) + 1, axis={x})", "np.diff({A})", "np.diff({A}, n=2)",
    "np.median({A})", "np.median({A}, axis={x})", "np.average({A}, weights=1 + DATA({A}) ** 2)", "np.nansum({A})",
    "np.linalg.norm({A} + 2)", "np.linalg.norm({M} + DATA({M}) + 3, axis={x})", "np.logaddexp.reduce({A}, axis={x})",
    "np.add.reduce({A}, axis={x}, where=MASK({A}))", "np.multiply.reduce({V})", "np.maximum.accumulate({A}, axis={x})",
    "np.add.reduceat({V}, [0, 2])", "np.add.accumulate({V})", "np.subtract.outer({V}, {V})", "np.trapezoid({V})",
    "np.sum({A}, axis=tuple(range({A}.ndim)))", "np.sum({A}, axis={x}, initial={s})", "np.sum({A} > {s}) * {t}",
    "np.any({A} > {s}) * {t}", "np.all({A} > -9.0) + {s}", "np.gradient({V})", "np.convolve({V}, [0.5, {s}, 1.0])",
    "np.correlate({V}, {V}, mode='same')", "np.trace({M})", "np.quantile({V}, 0.3)", "np.percentile({A}, 60, axis={x})",
    "np.corrcoef({V}, DATA({V}))[0, 1]", "np.histogram_bin_edges({V}, 2)",
)  # fmt: skip
ORDERS = (
    "np.sort({A})", "np.sort({A}, axis={x})[::-1]", "np.sort({A}, axis=None)", "{V}[np.argsort({V})]", "{A}.max()",
    "{V}[np.argmax({V})]", "{V}[np.argmin(np.abs({V}))]", "np.argmax({V}) * {s}",
    "np.argsort({V}, kind='stable') @ {V}",
    "np.take_along_axis({A}, np.argsort({A}, axis={x}), axis={x})", "np.partition({V}, 1)[:2]", "sorted({V})[0]",
    "np.take_along_axis({M}, np.argmax({M}, axis={x}, keepdims=True), axis={x})", "max({V})", "min({V}, key=abs)",
    "np.searchsorted([-0.5, 0.0, 0.5], {V}) * {s}", "np.digitize({V}, [-0.3, 0.3]) * {V}", "np.unique({V})",
    "np.sort_complex({V}).real", "np.lexsort(({V}, DATA({V}))) @ {V}", "np.flatnonzero({V} > {s}).sum() * {s}",
    "sorted({V}, reverse=True)[1] * {s}", "np.nanmax({A}, axis={x})", "np.nonzero({V} > {s})[0].size + {s}",
)  # fmt: skip
PLACES_AND_MASKS = (
    "{V}[{V} > {s}]", "np.extract({V} > {s}, {V})", "{V}[np.nonzero({V} > {s})]", "np.setdiff1d({V}, [{s}])",
    "np.union1d({V}, [{s}])", "np.intersect1d({V}, {V}[1:])", "np.unique({V}, return_counts=True)[1] * {s}",
    "np.bincount(np.digitize({V}, [-0.3, 0.3])) * {s}", "np.histogram({V}, [-1.0, 0.0, 1.0])[0] * {s}",
    "np.array([0.5, -1.0, 2.0])[np.floor(2 * {V}).astype(int) % 3]", "np.isin({V}, [0.5, {s}]) * {t}",
    "np.argwhere({V} > {s}).size * {t}", "{V}[int(3 * abs({s})) % len({V})]", "round(3 * {s}) * {t}",
    "[0.1, -0.2, 0.3][int(2 * abs({s})) % 3] * {t}", "{{0: 0.5, 1: 2.0}}[int({s} > 0)] * {t}",
    "np.sum(np.arange(4.0)[: int(3 * abs({s})) % 4]) * {t}", "sorted({V}[{V} > {s}])[0]", "{V}[{V} > {s}][-1] * {t}",
    "np.array_split({V}[{V} > {s}], 2)[0]", "np.mean({M}[{M}[:, 0] > {s}], axis=0)", "len({V}[{V} < {s}]) * {t}",
    "np.clip({V}[{V} > {s}], 0, {t}).sum()", "np.concatenate([{V}[{V} > {s}], {V}[{V} <= {s}]])", "{A}[{A} > {s}] ** 2",
)  # fmt: skip
MATRICES = (
    "np.linalg.solve(KERNEL({V}), {V})", "np.linalg.inv(KERNEL({V})) @ {V}", "np.linalg.cholesky(KERNEL({V}))",
    "np.linalg.det(KERNEL({V}))", "np.linalg.slogdet(KERNEL({V}))[1]", "np.linalg.solve(KERNEL({V}), DATA({V})) @ {V}",
    "np.linalg.solve(KERNEL({V}), np.outer({V}, {V}))", "np.linalg.cholesky(KERNEL({V})) @ {V}", "np.outer({V}, {V})",
    "np.einsum('ij,jk->ki', {M}, {M}.T)", "np.einsum('i,i', {V}, {V})", "np.einsum('ij->j', {M})", "{M} @ {M}.T",
    "np.tensordot({M}, {M}, axes=([0], [0]))", "{M}.T @ {M}", "np.inner({V}, {V})", "np.vdot({A}, {A})",
    "np.kron({V}, [1.0, {s}])", "np.dot({M}, {M}.T)", "{V} @ np.vander({V})", "np.cross({V}[:3], DATA({V}[:3]))",
    "np.matmul({A}[None], {A}.T)", "np.linalg.multi_dot([{M}, {M}.T, {M}])", "np.linalg.matrix_power(KERNEL({V}), 2)",
    "np.linalg.lstsq(KERNEL({V}), {V}, rcond=None)[0]", "np.linalg.pinv(KERNEL({V})) @ {V}", "np.meshgrid({V}, {V})[1]",
    "np.linalg.qr(KERNEL({V}))[1]", "np.linalg.eigvalsh(KERNEL({V}))", "np.diag({V})", "np.linalg.norm(KERNEL({V}))",
)  # fmt: skip
PYTHON = (
    "sum(a * b for a, b in zip({V}, {V}[::-1]))", "np.array([a ** k for k, a in enumerate({V})])", "float({k}) * {s}",
    "np.array([{s}, {t}, {s} * {t}])", "np.stack([row * {s} for row in {M}])", "np.array([[{s}, {t}], [{t}, 1.0]])",
    "functools.reduce(lambda a, b: np.sin(a) + b, {V})", "math.sin({s}) + math.hypot({s}, {t})", "abs({s}) * {t}",
    "{s} if {s} > {t} else {t} ** 2", "np.array(list(map(np.tanh, {V})))", "np.array({V}.tolist()) * {s}",
    "dict(a={V}, b={s})['a'] * {t}", "[{V}, {V} ** 2][-1]", "max({s}, {t}, 0.1)", "np.asarray({V}, dtype=float).copy()",
    "np.fromiter((a * {s} for a in {V}), float)", "{s} ** 2 + {t} if not {s} < 0 else -{s}", "round({s}, 1) + {t}",
    "np.full_like({V}, {s}) * {V}", "np.zeros_like({A}) + {A}", "np.linspace({s}, {t}, 4)", "divmod({s}, 0.4)[1]",
    "np.apply_along_axis(lambda row: row * row.sum(), {x}, {M})", "int({s} > {t}) * {s}", "np.arange(3) * {s}",
    "np.fromfunction(lambda i, j: i * {s} + j, (2, 3))", "(lambda a, *b: a * sum(b))(*{V})", "np.ones((2, 2)) * {s}",
)  # fmt: skip
# Statements between blank lines; {r} and {q} are new names, the result is r.
STORES = """
{r} = {M}.T * {s}
{q} = {r}.ravel()
{q}[0] = {t}

{r} = np.tanh({M}.T).copy()
{r}.reshape(-1)[1::2] *= {s}

{r} = np.cumsum({M}.T, axis={x})
{r}.flat[::-2] = {t}

{r} = np.where({M}.T > {s}, {M}.T, 0.5)
{q} = np.ravel({r}, "K")
{q}[-1] = {t}

{r} = np.broadcast_to({V}, (2, {V}.size)).copy()
{r}.flat[::2] = {s}

{r} = {A}.copy()
{r}[::-1] += {A} * {s}

{r} = 1.0 * {A}
{r}[1:] += {r}[:-1]

{r} = {A} + 0
{r}[:-1] = {r}[1:]

{r} = {A}.copy()
{r}[[0, 0, -1]] += {s}

{r} = {A}.copy()
np.add.at({r}, [0, 0, -1], {s})

{r} = {A}.copy()
{r} *= {r}

{r} = {A}.copy()
{q} = {r}[::-2]
{q} *= {s}

{r} = {A}.copy()
{q} = {r}[1:]
{q}[0] = {s}
{q}[-1] += {r}[0]

{r} = {A}.copy()
{r}[MASK({r})] = {s}

{r} = {A}.copy()
{r}[MASK({r})] *= {t}

{r} = {A}.copy()
{r}[{r} > {s}] = {t}

{r} = np.zeros({A}.shape)
{r}[...] = {A}
{r}[-1] **= 2

{r} = np.empty_like({A})
{r}[:] = {s}
{r}[0] = {A}[-1]

{r} = {M}.copy()
{r}[:, 0], {r}[:, -1] = {r}[:, -1].copy(), {r}[:, 0].copy()

{r} = {M}.copy()
{r}.T[0] -= {r}[0].sum()

{r} = {M}.copy()
{r}[np.diag_indices(min({M}.shape))] = {s}

{r} = {M}.copy()
np.fill_diagonal({r}, {s})

{r} = {V}.copy()
{r}[0], {r}[-1] = {r}[-1], {r}[0]

{r} = {V}.copy()
{r}[::2], {r}[1] = {s}, {t}

{r} = {V}.copy()
{r}.sort()

{r} = {V}.copy()
np.put({r}, [0, -1], [{s}, {t}])

{r} = {A}.copy()
np.copyto({r}, {s}, where=MASK({r}))

{r} = {A}.copy()
np.multiply({r}, {s}, out={r}, where=MASK({r}))

{r} = {A}.copy()
{q} = {r}.reshape(-1)
{q}[::3] = {s}

{r} = {V}.copy()
np.maximum.at({r}, PLACES({V}), {s})

{r} = {A}.copy()
{q} = {r}.T
{q} += {q}[..., ::-1]

{r} = {V}.copy()
{r}[PLACES({V})] = {V} * {s}

{r} = {V}.copy()
np.subtract.at({r}, PLACES({V}), {V})

{r} = {A}.copy()
for {q} in {r}[::-1]: {q} *= {s}

{r} = {V}.copy()
{r}[1:-1] = ({r}[2:] - {r}[:-2]) / 2

{r} = {V}.copy()
np.putmask({r}, {r} > {s}, {t})

{r} = {V}.copy()
np.place({r}, MASK({r}), [{s}, {t}])

{r} = {V}.copy()
for {q} in range(len({r})): {r}[{q}] += {r}[{q} - 1] * {s}

{r} = {A}.copy()
{r}.flat[::2] = {s}

{r} = {M}.copy()
{r}[1:, :-1] += {r}[:-1, 1:]

{r} = {A} * 1.0
{q} = {r} > {s}
{r}[{q}] = np.exp(-{r}[{q}] ** 2) * {t}
{r}[~{q}] *= {s}

{r} = np.zeros(np.shape({A}))
{q} = np.abs({A}) > 0.4
{r}[{q}] = np.log(np.abs({A} * 1.0)[{q}]) + ({A} * 1.0)[{q}].sum()
{r}[~{q}] = {t}

{r} = {V}[{V} > {s}]
{r}[::2] = {t}

{r} = {V}[{V} > {s}]
{r}.sort()

{r} = np.unique({V})
{q} = {r}[:, None]
{q} += {s}

{r} = {A}[{A} > {s}]
np.multiply({r}, {t}, out={r})

{r} = {V}[{V} > {s}]
{q} = {r}
{q} += 1
{q}[{q} > 1.3] = {t}

{r} = {M}[{M}[:, 0] > {s}]
{r}[0, -1] = {t}
{r}.T[0] *= {s}

{r} = {V}.copy()
{r}[int(3 * abs({s})) % len({r})] += {t}

{r} = {V}.copy()
np.add.at({r}, np.floor(3 * {V}).astype(int) % len({r}), {s})

{r} = {V}.copy()
{r}[np.argsort({V}, kind='stable')] = {V} * {s}

{r} = {V}.copy()
{r}[np.flatnonzero({V} > {s})] -= {t}

{r} = {V} * 1.0
{q} = {r}[{r} > {s}]
{r} = {r} * np.sum({q} * np.sin({q})) + {q} @ {q} + np.prod({q})
""".strip().split("\n\n")
FUNCTIONS = """
def {q}(a, n):
    return a if n == 0 else np.sin({q}(a, n - 1)) * {s}
{r} = {q}({A}, {k})

def {q}(a):
    if np.sum(a) > {s}:
        return a * {t}
    return np.sin(a)
{r} = {q}({A})

def {q}(a):
    for e in a:
        if e > {s} + 0.013:
            return e * {t}
    return {t}
{r} = {q}({V})

def {q}(a):
    return lambda b: a * b + {s}
{r} = {q}({A})({t})

def {q}(a, *, c={s}):
    return a - c
{r} = {q}({A}, c={t})

def {q}(a):
    if len(a) < 2:
        return a[0]
    return {q}(a[1::2]) * {s} + {q}(a[::2])
{r} = {q}({V})

{q} = []
for e in {V}:
    {q}.append(e * sum({q}) + {s})
{r} = np.array({q})

{r} = {s}
for {q} in {V}:
    if {q} < -0.6:
        break
    if {q} > 0.8:
        continue
    {r} = np.tanh({r} + {q})

{q} = {s}
{r} = 0
while {q} < 1.013 and {r} < 6:
    {q} = {q} + 0.3 + {t} ** 2
    {r} = {r} + 1
{r} = {r} * {q}

def {q}(a):
    a[0] = {s}
    return a.sum()
{r} = {q}({V}.copy())

class {q}:
    def __init__(self, a):
        self.a = a
{r} = {q}({V}).a * {s}

try:
    {r} = {V}[99]
except IndexError:
    {r} = {V} * {s}

{r}, *{q} = {V}
{r} = {r} * sum({q})

def {q}():
    yield from {V}
{r} = sum(e * e for e in {q}()) * {s}

{r} = {s}
for i in range({k}):
    for e in {V}:
        {r} = {r} * 0.5 + e

{r} = min(abs({s}), 9.0)
while {r} > 0.1:
    {r} = {r} / 2 - 0.01 * abs({t})

{r} = {s}
for {q} in range(int(4 * abs({t})) % 5):
    {r} = np.sin({r} + {q})

match {V}.shape:
    case (3,):
        {r} = {s}
    case _:
        {r} = {t}

{q} = iter({V})
{r} = next({q}) * next({q})

def {q}(a):
    nonlocal_ = [a]
    def add():
        nonlocal_[0] = nonlocal_[0] + {s}
    add()
    add()
    return nonlocal_[0]
{r} = {q}({A})

@functools.lru_cache
def {q}(n):
    return {s} if n == 0 else {q}(n - 1) * {t} + {q}(n // 2)
{r} = {q}({k})
""".strip().split("\n\n")
EXPRESSIONS = (
    *(ELEMENTWISE,) * 4, *(VIEWS,) * 3, *(FANCY,) * 2, *(REDUCTIONS,) * 4, *(ORDERS,) * 2, *(PLACES_AND_MASKS,) * 2,
    *(MATRICES,) * 2, PYTHON,
)  # fmt: skip
STATEMENTS = (STORES, STORES, FUNCTIONS)
