"""The generator of tests/support/nested_fuzz.py: texts of random functions of an array, the same for the same seed."""

from __future__ import annotations

from tests.support.draws import Draw

SIZE = 3
DEEPEST = 2  # functions inside functions

# {a}, {b}, {c} are operands of one shape, scalars or arrays; domains are kept by the form itself.
ELEMENTWISE = (
    "np.sin({a})", "np.cos({a}) * {b}", "np.tanh({a} + {b})", "np.exp(np.tanh({a}))", "np.exp(-({a}) ** 2)",
    "np.log(1.5 + np.sin({a}))", "np.log1p({a} * {a})", "np.sqrt(0.5 + {a} * {b} * {a} * {b})", "np.arctan({a})",
    "np.arctan2({a}, 1.5 + {b} * {b})", "np.arctan2({a}, {b})", "np.hypot({a}, {b})", "np.logaddexp({a}, {b})",
    "np.sinc({a})", "np.cbrt({a})", "np.arcsin(0.9 * np.tanh({a}))", "np.arccos(0.9 * np.sin({a}))",
    "np.arcsinh({a})", "np.arctanh(0.9 * np.sin({a}))", "np.cosh(np.sin({a}))", "np.expm1(np.sin({a})) * {b}",
    "np.exp2(np.cos({a}))", "np.log2(2 + np.cos({a}))", "np.reciprocal(2 + np.sin({a}))", "np.square({a} - {b})",
    "np.abs({a})", "np.abs({a}) ** 3", "np.abs({a} * {b}) ** 1.5", "np.sqrt(np.abs({a}) + 0.1) ** 2",
    "np.sqrt({a} * {a} + {b} * {b}) ** 2", "({a}) ** 2", "({a}) ** 3 - {b}", "({a}) ** 2.0", "({a}) ** 0 * {b}",
    "({a}) ** 1", "(2 + np.cos({a})) ** -1", "(2 + np.cos({a})) ** -2.5", "(1.5 + np.sin({a})) ** np.tanh({b})",
    "({a} * {a} + 0.2) ** {b}", "2.0 ** np.sin({a})", "np.power({a}, 4) / (1 + ({a}) ** 4)", "-{a}", "{a} + {b}",
    "{a} - {b}", "{a} * {b}", "{a} / (1.5 + {b} * {b})", "{a} * {b} * {c}", "{a} * {a}", "0 * {a} + {b}",
    "np.maximum({a}, {b})", "np.minimum({a}, {b} * {b})", "np.where({a} > {b}, {a} * {b}, {c})",
    "np.where({a} > 0, np.log(np.abs({a}) + 0.3), {b})", "np.where({a} < 9.0, {b}, np.log(-{a} ** 2 - 1.0))",
    "np.clip({a}, -0.7, 0.7)", "np.sign({a}) * {b}", "np.floor({a}) * {b}", "np.mod({a}, 0.7 + {b} * {b})",
    # + 0.013: a zero has a sign in floats and none at 120 digits
    "np.fmod({a}, 1.3)", "np.copysign({a}, {b} + 0.013)", "np.heaviside({a}, 0.5) * {b}", "np.nan_to_num({a})",
)  # fmt: skip
REDUCTIONS = (
    "{A}.sum()", "{A} @ {B}", "np.prod(np.tanh({A}))", "{A}.mean() * {a}", "np.max({A})", "{A}.min() + {a}",
    "np.linalg.norm({A} + {B} * {B})", "np.var({A})", "np.dot({A}, np.sin({B}))", "{A}[{i}]", "{A}[-1] * {B}[{i}]",
    "np.sum({A}[1:] * {B}[:-1])", "np.log(np.exp(np.tanh({A})).sum())", "np.trapezoid({A})", "np.ptp({A})",
    "np.linalg.det(np.eye({n}) * 2 + np.outer(np.sin({A}), np.cos({B})))", "np.einsum('i,i,i->', {A}, {B}, {A})",
)  # fmt: skip
ARRAYS = (
    "{A}[::-1] * {B}", "np.roll({A}, 1)", "np.cumsum({A})", "np.cumprod(np.tanh({A}))", "{a} * np.ones({n})",
    "np.outer({A}, {B}).sum(axis=0)", "M @ {A}", "{A} @ (M + np.outer({B}, {B}))", "{a} * {A}", "{A} + {a}",
    "np.concatenate([np.diff({A}), {B}[:1]])", "np.stack([{a}, {b}, {c}])",
    "np.array([{a}, x[1], {b}]) + 0 * (x + {p})",
    "np.linalg.solve(np.eye({n}) * 3 + np.outer(np.sin({A}), np.cos({B})), {B})", "np.cross({A}, {B})",
    "np.linalg.inv(np.eye({n}) * 3 + np.outer(np.sin({A}), np.sin({A}))) @ {B}", "np.repeat({A}, 2)[1:4]",
    "np.where({A} > {B}, {A}, {A} * {B})", "np.maximum({A}, {a})", "{A}[[2, 0, 1]] - {B}", "np.flip(np.sin({A}))",
)  # fmt: skip
# In-place updates of the fresh array r.
UPDATES = ("r[{i}] = {a}", "r[1:] += {A}[:-1]", "r *= {A}", "r[::2] -= {a}", "r[{i}] *= r[{j}]", "r += {a} * r")
# Loops over the scalar r, with one more scalar inside.
LOOPS = (
    "for k in range(3): r = np.sin(r) * {a} + k * 0.1",
    "for v in {A}: r = r * 0.5 + v * {a}",
    "for k, v in enumerate({A} * {B}): r = np.tanh(r + v) if k else r * v",
    "r = sum(v * w for v, w in zip({A}, {B})) + r",
)
# Python's own choices, in the outermost function alone: each doubles the paths, for every call of a function inside.
# + 0.013: what is equal but for rounding is decided alike
CONDITIONS = (
    "{a} > {b} + 0.013", "not {a} < 0.3", "{a} > 0.1 and {b} < 0.7", "{a} < -0.2 or {b} + 0.013 >= {c}",
    "-0.5 < {a} <= 0.6", "({a} < 0.4) == ({b} > 0.2)", "np.any({A} > 0.9)",
)  # fmt: skip
MOST_CONDITIONS = 3
SCALAR_INNER = ("D({g}, {a})", "DR({g}, {a})", "D2({g}, {a})", "{b} * D({g}, {a})", "D(lambda t: t * D({g}, t), {a})")
ARRAY_INNER = (
    "GRAD({g}, {A})", "HESS({g}, {A}) @ {B}", "HVP({g}, {A}, {B})", "GRAD(lambda w: (w * GRAD({g}, w)).sum(), {A})",
    "JVP(lambda w: w * {g}(w), {A}, {B})", "LIN(lambda w: w * {g}(w) + {B}, {A}, np.sin({B}))",
    "VJP(lambda w: w * {g}(w), {A}, {B})", "np.sin(GRAD({g}, {A} * {a}))",
)  # fmt: skip


class Body:
    """The statements of one function, growing, and the names that can be used in it."""

    deepest = DEEPEST
    scalar_inner, array_inner = SCALAR_INNER, ARRAY_INNER
    results_inside: tuple[str, ...] = ("{A}.sum() * {a}", "np.sin({A}) @ {B}", "{A} @ {A} + {a} * {b}")
    over_arrays_inside = 0.5  # how often a function inside is one of an array

    def __init__(self, draw: Draw, scalars: list[str], arrays: list[str], around: Body | None, own: str) -> None:
        self.draw, self.parameter = draw, own
        self.depth: int = 0 if around is None else around.depth + 1
        self.counter: list[int] = [0] if around is None else around.counter
        self.scalars, self.arrays = list(scalars), list(arrays)
        self.lines: list[str] = []
        self.conditions = 0

    def fill(self, form: str, **more: str) -> str:
        """Return a form with operands of this body, new ones more often than old ones."""
        pick = self.draw.choice
        scalars, arrays = self.scalars, self.arrays
        return form.format(
            **{name: pick([*scalars, *scalars[-3:], *scalars[-3:]]) for name in "abc"},
            **{name.upper(): pick([*arrays, *arrays[-2:]]) for name in "ab"},
            **{
                "i": self.draw.below(SIZE),
                "j": self.draw.below(SIZE),
                "n": SIZE,
                "p": self.parameter,
                **more,
            },
        )

    def fresh(self, letter: str) -> str:
        """Return a name that no other statement has."""
        self.counter[0] += 1
        return f"{letter}{self.counter[0]}"

    def grow(self) -> None:
        """Add one random statement."""
        self.draw.part(self.statement)

    def statement(self) -> None:
        kinds = [self.elementwise] * 7 + [self.over_arrays] * 4 + [self.reduce] * 3 + [self.array] * 3
        kinds += [self.update] * 2 + [self.loop] * 2
        if self.depth < self.deepest:
            kinds += [self.inner] * 3
        if self.depth == 0 and self.conditions < MOST_CONDITIONS:
            kinds += [self.branch] * 4
        self.draw.choice(kinds)()

    def elementwise(self) -> None:
        name = self.fresh("s")
        self.lines.append(f"{name} = {self.fill(self.draw.choice(ELEMENTWISE))}")
        self.scalars.append(name)

    def over_arrays(self) -> None:
        form = self.draw.choice(ELEMENTWISE).format(a="{A}", b="{B}", c=self.draw.choice(("{A}", "{a}")))
        self.append_array(self.fill(form))

    def reduce(self) -> None:
        name = self.fresh("s")
        self.lines.append(f"{name} = {self.fill(self.draw.choice(REDUCTIONS))}")
        self.scalars.append(name)

    def array(self) -> None:
        self.append_array(self.fill(self.draw.choice(ARRAYS)))

    def update(self) -> None:
        name = self.fresh("v")
        self.lines.append(self.fill("r = {A} + 0 * (x + {p})"))  # of this level, so it can hold all
        self.lines += [self.fill(self.draw.choice(UPDATES)) for _ in range(self.draw.integer(1, 3))]
        self.lines.append(f"{name} = r")
        self.arrays.append(name)

    def loop(self) -> None:
        name = self.fresh("s")
        self.lines += [self.fill("r = {a}"), self.fill(self.draw.choice(LOOPS)), f"{name} = r"]
        self.scalars.append(name)

    def branch(self) -> None:
        """A scalar or an array that depends on a condition."""
        self.conditions += 1
        name, over_array = self.fresh("b"), self.draw.chance(0.4)
        forms = ("{A} * {a}", "np.sin({A}) + {B}") if over_array else ELEMENTWISE
        chosen = [self.fill(self.draw.choice(forms)) for _ in range(2)]
        chosen = [f"{value} + 0 * (x + {self.parameter})" for value in chosen] if over_array else chosen
        condition = self.fill(self.draw.choice(CONDITIONS))
        self.lines += [f"{name} = {chosen[0]}", f"if {condition}:", f"    {name} = {chosen[1]}"]
        (self.arrays if over_array else self.scalars).append(name)

    def inner(self) -> None:
        """A function inside, which sees all names around it, and a derivative of it at some point."""
        g, over_array = self.fresh("g"), self.draw.chance(self.over_arrays_inside)
        y = self.fresh("y")
        body = type(self)(self.draw, self.scalars, self.arrays, self, y)
        (body.arrays if over_array else body.scalars).extend([y] * 3)
        for _ in range(self.draw.integer(1, 3)):
            body.grow()
        result = body.fill(self.draw.choice(self.results_inside))
        lines = [*body.lines, f"return {result}"]
        self.lines += [f"def {g}({y}):", *["    " + line for line in lines]]
        if over_array:
            self.append_array(self.fill(self.draw.choice(self.array_inner), g=g))
        else:
            name = self.fresh("s")
            self.lines.append(f"{name} = {self.fill(self.draw.choice(self.scalar_inner), g=g)}")
            self.scalars.append(name)

    def append_array(self, expression: str) -> None:
        name = self.fresh("v")
        self.lines.append(f"{name} = np.tanh({expression})" if self.draw.chance(0.3) else f"{name} = {expression}")
        self.arrays.append(name)


class Words(Body):
    """Functions inside functions, to a depth of four, each with a derivative of another mode."""

    deepest = 4
    scalar_inner = (
        "D({g}, {a})", "DR({g}, {a})", "{b} * D({g}, {a})", "DR(lambda t: t * {g}(t), {a})", "LIN({g}, {a}, {b})",
        "JVP({g}, {a}, {b})", "D(lambda t: {g}(t * {b}), {a})", "DR({g}, D(lambda t: t * {a}, {b}))",
    )  # fmt: skip
    results_inside = ("{a} * {p} + {b}", "np.sin({p} * {a})", "{a} * {b} * {p} ** 2", "np.exp(-({p} ** 2)) * {a} + {p}")
    over_arrays_inside = 0.0

    def statement(self) -> None:
        """A function inside more often than not, if it may be."""
        inner = [self.inner] * 4 if self.depth < self.deepest else []
        self.draw.choice([self.elementwise, self.elementwise, self.reduce, *inner])()


def program_text(draw: Draw, kind: type[Body] = Body) -> str:
    """Return the text of a random function `f(x)` of an array of SIZE numbers, with a scalar result."""
    body = kind(draw, [f"x[{k}]" for k in range(SIZE)], ["x"], None, "x")
    for _ in range(draw.integer(3, 9)):
        body.grow()
    matrix = [[round(draw.real(-1, 1), 2) for _ in range(SIZE)] for _ in range(SIZE)]
    result = body.fill(draw.choice(["{A}.sum() + {a}", "{A} @ {B} + {a} * {b}", "{a}", "np.tanh({A}).sum() * {a}"]))
    lines = [*body.lines, f"return {result}"]
    return f"M = np.array({matrix})\n\n\ndef f(x):\n" + "".join(f"    {line}\n" for line in lines)
