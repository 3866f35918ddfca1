"""What repeats, as the plan says it and as the program of the function, and what `symad hessian` prints of it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import symad as sa
from codegen import rolled_text
from symad.cli import main

EXAMPLES = Path(__file__).parents[3] / "examples"


def chain(x):
    for k in range(50):
        x = np.sin(x) * (k + 0.5) + x
    return x


def test_a_sum_and_its_lines(tmp_path):
    source = tmp_path / "Springs.py"
    source.write_text(
        "def energy(x):\n    total = 0.0\n    for i in range(20):\n        for j in range(i):\n"
        "            stretch = x[i] - x[j]\n            total = total + stretch**4 - stretch\n    return total\n"
    )
    space: dict = {}
    exec(compile(source.read_text(), str(source), "exec"), space)
    found = sa.plan(sa.hessian(space["energy"]), np.linspace(0, 1, 20))
    assert found.lines == ["190 copies of Springs.py:5-6, 4 operations each: one loop"]
    text = rolled_text(found.primal.program)
    assert "for k in range(190):  # Springs.py:5-6" in text
    assert "t1**4" in text


def test_a_chain_and_its_carry():
    found = sa.plan(chain, 1.0)
    (loop,) = found.loops
    assert loop.carries
    assert "for k in range(50):" in rolled_text(found.primal.program)


def test_loops_that_feed_loops_are_named():
    found = sa.plan(lambda x: np.sum(np.tanh(np.outer(np.arange(1.0, 20.0), x) @ x) ** 2), np.ones(12))
    assert found.loops
    assert found.title.startswith("Plan of")


def test_nothing_repeats():
    found = sa.plan(lambda x: x[0] * x[1], np.ones(2))
    assert (found.lines, found.chosen) == ([], "straight")
    assert (
        "1 operation traced; nothing repeats. Compiled in straight lines: too few operations for loops"
        in found.text().replace("\n", " ")
    )


def by_number(x):
    return sa.fori_loop(0, 20, lambda k, total: total + np.sum(x[:k]), 0.0)


def by_steps(x):
    def step(total, k):
        for i in range(k):
            total = total + x[i]
        return total, None

    return sa.scan(step, 0.0, np.arange(20))[0]


def by_list(x):
    seen = []
    return sa.sum_over(lambda y: (seen.append(y), y * y)[1], x)


def by_counter(x):
    calls = 0

    def body(y):
        nonlocal calls
        calls += 1
        return y * calls

    return sa.vmap(body)(x) @ x


def by_chance(x):
    generator = np.random.default_rng(0)
    return sa.sum_over(lambda y: y * generator.normal(), x)


def by_iterator(x):
    weights = iter(range(100))
    return sa.sum_over(lambda y: y * next(weights), x)


def by_rule(x):
    cube = sa.custom_derivative(lambda y: y**3, lambda primals, tangents: 3 * primals[0] ** 2 * tangents[0])
    return sa.sum_over(cube, x)


REASONS = {
    by_number: "'x[:k]' asks for an integer index of a value that is another one in every repetition (NAME:+1)",
    by_steps: "'range(k)' asks for an integer index of a value that is another one in every repetition (NAME:+2)",
    by_list: "its body changes a list, and it has to do so in every repetition",
    by_counter: "its body changes the variable calls, and it has to do so in every repetition",
    by_chance: "its body changes a generator of random numbers, and it has to do so in every repetition",
    by_iterator: "it uses an iterator, which gives another value each time",
    by_rule: "a custom or implicit derivative in its body belongs to one node, and not to a loop",
}


@pytest.mark.parametrize("f", REASONS, ids=lambda f: f.__name__)
def test_loops_that_are_carried_out_say_why(f):
    (line,) = sa.plan(f, np.ones(20)).carried_out
    first, name = f.__code__.co_firstlineno, Path(__file__).name
    reason = re.sub(r"NAME:\+(\d+)", lambda found: f"{name}:{first + int(found[1])}", REASONS[f])
    place, _, told = line.partition(" is carried out repetition by repetition: ")
    assert told == reason
    assert first < int(re.fullmatch(rf"the loop at {name}:(\d+)", place)[1]) < first + 10
    assert reason in sa.plan(sa.grad(f), np.ones(20)).text(1000)


@pytest.mark.parametrize("f", [by_number, by_list], ids=lambda f: f.__name__)
def test_refusals_name_the_function_and_the_reason(f):
    (line,) = sa.plan(f, np.ones(20)).carried_out
    with pytest.raises(sa.errors.ArgumentError) as refused:
        sa.compile(f, np.ones(20), roll="always")
    assert str(refused.value).startswith(f"{__file__}:{f.__code__.co_firstlineno}: ")
    assert line in str(refused.value)


def test_loops_that_are_one_body_give_no_reasons():
    def inside(x):
        return sa.sum_over(lambda y: sa.fori_loop(0, 3, lambda k, total: total * y, 1.0), x)

    assert sa.plan(inside, np.ones(200)).carried_out == []
    assert sa.plan(lambda x: sa.sum_over(lambda y: y * y, x), np.ones(1)).carried_out == []


def test_what_was_written_down_counts_as_traced():
    found = sa.plan(lambda x: sa.sum_over(lambda u: np.sin(u) * u, x), np.ones(500))
    assert found.traced >= 2
    assert found.lines[0].startswith("500 copies")


def test_the_command_says_which_loops_it_compiles(capsys):
    assert main(["hessian", f"{EXAMPLES / 'lennard_jones.py'}:energy", "--roll", "always"]) == 0
    text = capsys.readouterr().out.replace("\n", " ")
    assert "copies of lennard_jones.py:21-23, 18 operations each: one loop" in text
    assert "operations written" in text
    assert "evaluated in 50 digits" in text


@pytest.mark.parametrize(("roll", "width"), [("auto", 60), ("always", 80), ("auto", 120)])
def test_the_command_fits_a_terminal(capsys, monkeypatch, roll, width):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["hessian", f"{EXAMPLES / 'lennard_jones.py'}:energy", "--roll", roll]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert max(map(len, lines)) <= width
    assert any(line.startswith("78 copies of") for line in lines)


def test_the_command_compiles_straight_lines_when_asked(capsys):
    assert main(["hessian", f"{EXAMPLES / 'lennard_jones.py'}:energy", "--roll", "never"]) == 0
    text = capsys.readouterr().out
    assert "operations before CSE" in text
    assert "Compiled in straight lines" in text


def test_the_command_does_not_forget_that_loops_were_asked_for(capsys):
    for option in (["--emit", "let"], ["--mode", "edge"]):
        assert main(["hessian", f"{EXAMPLES / 'lennard_jones.py'}:energy", "--roll", "always", *option]) == 2
        assert f"--roll always with {' '.join(option)}: that is of straight lines" in capsys.readouterr().err


def test_names_are_read_as_python_reads_them(capsys, tmp_path):
    file = tmp_path / "greek.py"
    file.write_text("import numpy as np\ndef \u00b5_λ(θ=np.ones(2)):\n    return θ[0] ** 2 * θ[1]\n", encoding="utf-8")
    assert main(["hessian", f"{file}:\u00b5_λ"]) == 0
    assert "2 variables" in capsys.readouterr().out


def test_the_command_says_why_there_are_no_loops(capsys, tmp_path):
    file = tmp_path / "small.py"
    file.write_text("import numpy as np\ndef f(x=np.ones(2)):\n    return x[0] ** 2 * x[1]\n")
    assert main(["hessian", f"{file}:f"]) == 0
    assert "too few operations for loops" in capsys.readouterr().out
    assert main(["hessian", f"{file}:f", "--roll", "always"]) == 2
    assert "too few operations for loops" in capsys.readouterr().err


def test_a_loop_that_only_adds_says_so():
    found = sa.plan(lambda x: sa.sum_over(lambda a: sa.sum_over(lambda b: np.sin(a * b), x), x), np.ones(50))
    assert any(" terms of test_loops_report.py:" in line and "added up" in line for line in found.lines)
