"""The campaign on foreign array programs (`python -m tests.foreign_arrays`): what it says of right and wrong ones."""

import numpy as np
import pytest

from symad.errors import TraceError
from tests import foreign_arrays
from tests.foreign_arrays import HEADER, compared, elsewhere, outcome, row, told, work as carry_out
from tests.support.captured import CapturedError, Marked, captured, exchanged, flatten, minimize, optimizer
from tests.support.foreign_programs import ROWS, Program, Row, differences


def programs(tool):
    return Row(
        "numpy", "5", "its gradient", lambda: Program(lambda x: np.sum(x["a"] ** 3), {"a": np.arange(5.0)}, tool)
    )


@pytest.mark.parametrize(("factor", "kind"), [(3, "right"), (3.0001, "wrong")])
def test_gradients_are_compared_with_the_tool(factor, kind, monkeypatch, capsys):
    monkeypatch.setitem(ROWS, "cube", programs(lambda x: (np.sum(x["a"] ** 3), {"a": factor * x["a"] ** 2})))
    monkeypatch.setattr(foreign_arrays, "best", lambda f: 1.0)
    carry_out("cube")
    lines = capsys.readouterr().out.splitlines()
    found = {each.pop("way"): each for each in map(foreign_arrays.json.loads, lines)}
    assert [found[way]["kind"] for way in ("numbers", "products", "compiled")] == [kind, "right", kind]
    assert len(row("cube", found)) == len(HEADER)


def test_refusals_are_told_without_folders():
    def refused():
        raise TraceError("a thing", where="/home/someone/site-packages/kind/of.py:3", why="so")

    assert told(outcome(refused)) == "refused: TraceError: kind/of.py:3: a thing: so"
    assert outcome(lambda: 1 // 0)["kind"] == "crash"
    assert compared((1.0, [2.0]), (1.0, np.array([2.0])), 0.0)["kind"] == "right"


def test_a_program_whose_package_is_missing_is_not_run(monkeypatch):
    monkeypatch.setenv("SYMAD_FOREIGN", "nowhere")
    found = elsewhere("ica", 600.0)
    assert {found[way]["kind"] for way in foreign_arrays.WAYS} == {"not run"}


def test_what_is_minimized_is_captured():
    def program():
        minimize(Marked(lambda x, scale: np.sum(scale * x)), [1, 2], args=(3.0,))

    f, start = captured(program)
    assert (f(start), start.tolist()) == (9.0, [1.0, 2.0])
    with pytest.raises(CapturedError):
        optimizer(Marked(np.sum), np.ones(2), num_iters=3)


def test_containers_are_flattened_and_back():
    tree = {"b": [(np.ones((2, 2)), np.zeros(1))], "a": np.arange(3.0)}
    flat, back = flatten(tree)
    assert flat.tolist() == [0, 1, 2, 1, 1, 1, 1, 0]
    assert back(flat)["b"][0][0].shape == (2, 2)
    assert "import numpy as np" in exchanged("import autograd.numpy as np")
    np.testing.assert_allclose(differences(lambda x: np.sum(x**3), np.ones((2, 2))), np.full((2, 2), 3.0))
