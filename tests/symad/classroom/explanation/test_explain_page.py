"""explain: what the page says about tapes, memory and operations; folding; the lines of the user's file."""

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.display.document import Folded, Table
from symad.errors import ArgumentError
from tests.support import mixes

X = sp.Symbol("x")


def product(x):
    y = np.sin(x)
    return y * x


def inverse_norm(x):
    s = x @ x
    return 1 / np.sqrt(s)


@pytest.fixture(scope="module")
def twice():
    return sa.explain(mixes.nested("RR", product), 1.0, detail="all")


def test_tapes_hold_what_levels_follow(twice):
    """By hand: f is sin, product; its gradient is sin + x cos: sin, cos, product, sum."""
    independent, hierarchical, reentrant, staged = twice.tapes.designs
    assert [(tape.owner, tape.entries, tape.freed) for tape in independent.tapes] == [
        ("level 2", 2, 1),
        ("level 1", 4, 2),
    ]
    assert [(tape.entries, tape.refers, tape.freed) for tape in hierarchical.tapes] == [(2, 0, 2), (3, 1, 2)]
    assert [(tape.entries, tape.grows) for tape in reentrant.tapes] == [(5, (2, 5, 5))]
    assert (staged.name, staged.tapes) == ("staged", ())
    names = [twice.book.graph.heads[node].__name__ for node in twice.tapes.shared]
    assert names == ["sin"]
    assert [twice.book.graph.heads[node].__name__ for node in twice.tapes.made_inside] == ["cos", "Mul", "Add"]


def test_each_failure_is_placed_in_this_program(twice):
    failures = {failure.name.partition(" (")[0]: failure.where for failure in twice.tapes.failures}
    assert list(failures) == ["tape corruption", "missing gradients", "duplicated gradients", "memory explosion"]
    assert failures["tape corruption"].startswith("1 variable would have a cotangent at level 2 and one at level 1")
    assert failures["missing gradients"].startswith(
        "level 1 follows 3 operations that the derivative of an inner level"
    )
    assert failures["duplicated gradients"].startswith("1 entry would stand on the tapes of both")
    assert "level 2: 2, level 1: 4, together 6" in failures["memory explosion"]


@pytest.mark.parametrize(
    ("word", "entries"), [("F", []), ("R", [2]), ("FR", [2]), ("RF", [4]), ("FF", []), ("RRR", [2, 4, 6])]
)
def test_only_reverse_levels_have_tapes(word, entries):
    tapes = sa.explain(mixes.nested(word, product), 1.0).tapes
    assert [tape.entries for tape in tapes.designs[0].tapes] == entries
    assert len(tapes.failures) == 4
    assert all("no tape" in failure.where for failure in tapes.failures) == (entries == [])


def test_symad_is_said_to_be_staged(twice):
    text = twice.text(130)
    assert "symad is staged" in text
    assert "no tape: each level's program is written before any runs" in text


@pytest.mark.parametrize("word", ["R", "RR", "RRRRR"])
def test_the_lives_of_tapes_phase_by_phase(word):
    """A tape has entries until the sweep after which it is freed; values that are kept have no end of their own."""
    found = sa.explain(mixes.nested(word, product), 1.0, detail="all")
    (table,) = [block for block in found.document() if isinstance(block, Table) and "tape of" in block.header]
    count = len(found.tapes.phases)
    assert table.header[2 : 2 + count] == tuple(found.tapes.phases)
    assert {row[0] for row in table.rows} == {"independent", "hierarchical", "reentrant", "staged"}
    for row in table.rows:
        lives = [cell for cell in row[2 : 2 + count] if cell]
        assert lives
        assert not any(row[2 + len(lives) : 2 + count])
        assert [cell.endswith("freed") for cell in lives] == [False] * (len(lives) - 1) + [row[0] != "staged"]


def test_what_is_kept_and_what_is_not(twice):
    inner, outer = twice.levels
    assert (inner.depth, outer.depth) == (2, 1)
    kept = [line.formula for line in twice.kept(inner)]
    assert sorted(kept) == ["cos(v2)", "sin(v2)", "v1"]  # v1 is the argument of the inner level's parameter
    assert [line.formula.partition("*")[1] for line in twice.not_kept(inner)] == ["*"]
    text = twice.text(100)
    assert f"Level 2 keeps {len(kept)} values ({8 * len(kept)} bytes)" in text


def test_what_an_inner_function_computes_for_itself_is_not_its_derivative():
    """x**2 is written by the user inside of the inner level, which does not follow it."""
    explanation = sa.explain(sa.grad(lambda x: sa.grad(lambda y: x**2 * np.sin(y))(x)), 1.0)
    made = [explanation.book.graph.heads[node].__name__ for node in explanation.tapes.made_inside]
    assert made == ["cos", "Mul"]


def test_forward_mode_keeps_nothing():
    text = sa.explain(sa.derivative(product), 1.0, detail="all").text(100)
    assert "Level 1 (derivative) keeps nothing" in text
    assert " ".join(text.split()).count("no level is reverse, so there is no tape") == 1


def test_operations_add_up(twice):
    table = next(block for block in twice.document() if isinstance(block, Table) and "so far" in block.header)
    new, so_far = ([int(row[k].split()[0]) for row in table.rows[:-1]] for k in (2, 3))
    assert list(np.cumsum(new)) == so_far
    assert twice.primal_operations == 2
    assert table.rows[-1][3] == str(twice.operations)
    assert twice.operations == sa.trace(mixes.nested("RR", product), 1.0).count_ops()


def test_the_short_form_folds_what_a_first_look_does_not_need():
    short, whole = (sa.explain(sa.grad(product), 1.0, detail=detail) for detail in ("short", "all"))
    assert sa.explain(sa.grad(product), 1.0).text(100) == short.text(100)
    folded = [block for block in short.document() if isinstance(block, Folded)]
    assert [block.summary.split()[0] for block in folded] == ["What", "The"]
    assert "+ What is kept for the reverse sweeps (folded: a page opens it)" in short.text(100)
    assert "until its sweep" in whole.text(100)
    assert "until its sweep" not in short.text(100)
    assert short.html().count("<details><summary>") == 2
    assert short.latex() == whole.latex()
    with pytest.raises(ArgumentError, match="use one of 'short', 'all'"):
        sa.explain(sa.grad(product), 1.0, detail="long")


def test_the_contents_say_what_each_stage_adds():
    explanation = sa.explain(sa.grad(product), 1.0)
    table = next(block for block in explanation.document() if isinstance(block, Table) and "contents" in block.header)
    assert len(table.rows) == len(explanation.stages) + 1
    assert table.rows[0][:3] == ("1.", "level 1: product", "2 new operations")
    assert table.rows[-1][1].startswith("the program of the result")
    assert table.rows[-1][2] == f"{explanation.operations} operations"


def test_a_formula_keeps_the_names_of_its_symbols():
    text = sa.explain("sin(x*y)", ["x", "y"]).text(100) + sa.explain(sa.grad(sa.from_sympy([X], sp.sin(X))), 1.0).text()
    assert "argument_0" not in text


def test_long_programs_are_folded_and_nothing_is_lost():
    explanation = sa.explain(
        sa.hessian(lambda x: (np.sin(x[:-1] * x[1:]) * x[:-1] ** 2).sum(), sparse=True), np.ones(300)
    )
    assert len(explanation.lines) > 5000
    text = explanation.text(100)
    assert len(text.splitlines()) < 600
    assert f"… {len(explanation.lines) - 30} lines" in text
    assert "all are in explanation.lines" in " ".join(text.split())
    names = [line.name for line in explanation.lines]
    assert len(set(names)) == len(names)


def test_many_levels_are_folded():
    def descent(x):
        for _ in range(40):
            x = x - 0.1 * sa.grad(product)(x)
        return x

    explanation = sa.explain(sa.grad(descent), 1.0, detail="all")
    assert len(explanation.levels) == 41
    text = explanation.text(100)
    assert "The others would have tapes of their own" in " ".join(text.split())
    assert "more stages like these are in explanation.stages" in " ".join(text.split())
    assert "17 more levels are in explanation.levels" in " ".join(text.split())


def test_lines_of_the_file_are_shown():
    explanation = sa.explain(sa.grad(inverse_norm), np.ones(2))
    sources = {line.source for line in explanation.lines if line.source[0]}
    assert {(file, text) for file, _, text in sources} == {
        ("test_explain_page.py", "s = x @ x"),
        ("test_explain_page.py", "return 1 / np.sqrt(s)"),
    }
    assert "written in test_explain_page.py" in explanation.text(120)
    derived = [line for line in explanation.lines if any(role.kind == "cotangent" for role in line.roles)]
    assert not any(line.source[0] for line in derived)


@pytest.mark.parametrize("what", ["x*sin(x) + x**2", lambda x: x * np.sin(x) + x**2], ids=["formula", "one line"])
def test_one_line_is_no_column(what):
    """A formula is in no line of a file; neither does a column tell anything where all is in one line."""
    assert "written in" not in sa.explain(what, "x" if isinstance(what, str) else 1.0).text(200)


def test_a_script_that_is_no_python_file_shows_no_lines(tmp_path):
    script = tmp_path / "command"
    script.write_text("def f(x):\n    y = x * x\n    return y + x\n", encoding="utf-8")
    found = {}
    exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), found)
    assert not any(line.source[0] for line in sa.explain(found["f"], 1.0).lines)


def test_a_formula_is_explained_like_the_function():
    x = sp.Symbol("x")
    for formula, argument in (("x*sin(x)", "x"), (x * sp.sin(x), {x: 2.0})):
        assert [line.formula for line in sa.explain(formula, argument).lines] == ["sin(x)", "x*v1"]
    with pytest.raises(ArgumentError, match="no argument"):
        sa.explain("x*sin(x)")
    with pytest.raises(ArgumentError, match="argument"):
        sa.explain("x*sin(x)", "x", 2.0)


def test_a_power_has_its_line_too():
    stage = sa.explain(sa.grad(lambda x: x[0] ** 2 * x[1]), np.ones(2)).stages[0]
    written = [line.source[0] for line in stage.lines if any(role.kind == "primal" for role in line.roles)]
    assert written == ["test_explain_page.py"] * 2


def test_stages_are_named_as_the_field_names_them():
    titles = [stage.title for stage in sa.explain(mixes.nested("RR", product), 1.0, detail="all").stages]
    assert titles == [
        "product",
        "product, linearized",
        "product, linearized and transposed",
        "the transposed program of level 2",
        "the transposed program of level 2, linearized",
        "the transposed program of level 2, linearized and transposed",
    ]
    text = sa.explain(mixes.nested("FR", product), 1.0, detail="all").text(100)
    assert "This is the differentiated transposed program." in text


@pytest.mark.parametrize(
    ("f", "names"),
    [
        (sa.grad(sa.derivative(product)), ["derivative", "grad"]),
        (sa.hessian(inverse_norm), ["hessian"]),
        (lambda x: sa.hvp(inverse_norm, (x,), (x,)), ["grad", "hvp"]),
        (lambda x: sa.linearize(inverse_norm, x)[1](x), ["linearize"]),
        (sa.jit(sa.value_and_grad(inverse_norm)), ["value_and_grad"]),
    ],
)
def test_levels_know_who_opened_them(f, names):
    argument = 1.0 if names[0] == "derivative" else np.ones(2)
    assert [level.transform for level in sa.explain(f, argument).levels] == names


def test_names_never_meet_those_of_the_user():
    explanation = sa.explain(sa.grad(lambda v1: np.sin(v1) * v1), 1.0)
    assert explanation.lines[0].formula == "v1"
    assert len({line.name for line in explanation.lines} | {"v1"}) == len(explanation.lines) + 1
