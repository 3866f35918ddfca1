"""The benchmark's own machinery: a run writes its report, and a wrong number or a broken candidate fails it."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import benchmarks.ode
import benchmarks.peers
import benchmarks.slower
from benchmarks.__main__ import main
from benchmarks.derivatives import aligned, distances
from benchmarks.limited import build_elsewhere
from benchmarks.models import brusselator_residual, spherical_harmonics
from benchmarks.page import write_page
from benchmarks.peers.ours import Symad
from benchmarks.problems import Problem, make_problems
from benchmarks.tables import table


class Wrong(Symad):
    """A candidate whose last entry is off by a little."""

    name = "wrong"

    def build(self, problem: Problem) -> Any:
        made = super().build(problem)
        kernel, values = made.native

        def spoiled(x: Any) -> Any:
            kernel(x, out=values)
            values.flat[-1] *= 1 + 1e-9

        return benchmarks.peers.Evaluator(lambda x: lambda: spoiled(x), lambda _: values.ravel(), made.pattern)


def run(folder: Path, peers: str, sections: str) -> int:
    problems = "bundle,logsumexp20"
    choice = ["--peers", peers, "--sections", sections, "--problems", problems]
    return main(["--quick", *choice, "--output", str(folder)])


def test_a_run_writes_tables_and_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "symad,symad-fast", "hessians,jacobians,batch,overhead") == 0
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "log-sum-exp, n = 20" in report
    assert "reprojection" in report
    numbers = json.loads((tmp_path / "numbers.json").read_text(encoding="utf-8"))
    assert {row["candidate"] for row in numbers["batch"]["bundle"]} == {"symad", "symad-fast"}
    assert all(row["difference"] < 1e-12 for row in numbers["jacobians"]["bundle"])
    assert all(row["blocks"]["1"]["median"] > 0 for row in numbers["batch"]["bundle"])
    assert report in capsys.readouterr().out
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<table>") == report.count("|:--|")
    assert page.count("<svg") == report.count("](")


def test_the_page_needs_no_other_file(tmp_path: Path) -> None:
    """Two pictures that name their parts alike, text that looks like markup, cells that say whether a goal is met."""
    drawn = '<?xml version="1.0"?>\n<svg><g id="a"/><g id="ab"/><use href="#a"/><use clip-path="url(#ab)"/></svg>'
    for name in ("one", "two"):
        (tmp_path / f"{name}.svg").write_text(drawn, encoding="utf-8")
    shown = "# Run\n\n**load** 1 < 2, `a & b`\n\n![the first](one.svg)\n\n![two](two.svg)\n\n"
    rows = table(["row", "goal 5", "times"], [["x", "met by fast", "6"], ["y", "40 %", "2"], ["z", "-", "-"]])
    (tmp_path / "report.md").write_text(shown + rows, encoding="utf-8")
    page = write_page(tmp_path).read_text(encoding="utf-8")
    assert "<p><b>load</b> 1 &lt; 2, <code>a &amp; b</code></p>" in page
    inside = '<svg><g id="one-a"/><g id="one-ab"/><use href="#one-a"/><use clip-path="url(#one-ab)"/></svg>'
    assert f'<figure role="img" aria-label="the first">{inside}</figure>' in page
    assert inside.replace("one-", "two-") in page
    for cell in ('<td class="met">met by fast</td>', '<td class="short">40 %</td>', "<td>2</td>", "<td>-</td>"):
        assert cell in page
    assert "src=" not in page
    assert "http" not in page


def test_what_became_slower_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Against numbers of now, of a machine on which all was a thousand times faster, and against none."""
    run = partial(benchmarks.slower.main, ["--rows", "rosenbrock2;bundle", "--folder", str(tmp_path)])
    assert run() == 2
    assert "nothing is kept" in capsys.readouterr().out
    assert benchmarks.slower.main(["--update", "--rows", "rosenbrock2", "--folder", str(tmp_path)]) == 0
    path = tmp_path / benchmarks.slower.KEPT
    kept = json.loads(path.read_text(encoding="utf-8"))
    kept["rows"]["rosenbrock2"]["call"] /= 1e3
    kept["rows"]["rosenbrock2"]["build"] *= 1e3
    path.write_text(json.dumps(kept), encoding="utf-8")
    capsys.readouterr()
    assert run() == 1
    said = capsys.readouterr().out
    assert "| rosenbrock2 | ns a call |" in said
    assert "to build" not in said
    assert "1 rows compared with what is kept, 1 slower; not kept before: bundle" in said


def test_a_candidate_that_disagrees_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(benchmarks.peers.CANDIDATES, "symad-tier", Wrong)
    assert run(tmp_path, "symad,symad-fast,symad-tier", "jacobians") == 1
    assert "wrong disagrees on bundle" in capsys.readouterr().err


def test_unknown_names_are_refused() -> None:
    with pytest.raises(SystemExit, match="unknown: nobody"):
        main(["--peers", "nobody"])


def test_entries_are_compared_where_they_stand() -> None:
    problem = Problem("p", "", np.sum, np.ones(2), 0.1)
    lower = (np.array([0, 1, 1]), np.array([0, 0, 1])), np.array([1.0, 2.0, 3.0])
    full = (np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])), np.array([1.0, 2.0, 2.0, 3.0])
    found = aligned({"lower": lower, "full": full}, problem)
    assert found["lower"].tolist() == found["full"].tolist() == [1.0, 2.0, 3.0]
    assert distances({"a": np.array([1.0, 2.0]), "b": np.array([1.0, np.nan])})["b"] == np.inf


def test_a_build_that_fails_elsewhere_says_why() -> None:
    assert build_elsewhere("symad", "nothing", 600, 12).reason == "failed: KeyError: 'nothing'"
    assert build_elsewhere("symad", "chain20", 600, 12).seconds > 0


def test_harmonics_are_orthonormal_and_the_brusselator_has_its_equilibrium() -> None:
    nodes, weights = np.polynomial.legendre.leggauss(10)
    angles = np.arange(20) * np.pi / 10
    flat = np.sqrt(1 - nodes**2)
    points = [(s * np.cos(a), s * np.sin(a), z) for s, z in zip(flat, nodes, strict=True) for a in angles]
    values = np.array([spherical_harmonics(np.array(point)) for point in points])
    products = values.T @ (np.repeat(weights, 20)[:, None] * np.pi / 10 * values)
    np.testing.assert_allclose(products, np.eye(80), atol=1e-13)
    resting = np.concatenate([np.full(16, 1.0), np.full(16, 3.4)])
    np.testing.assert_allclose(brusselator_residual(resting), 0, atol=1e-14)


def test_every_problem_has_its_name_and_a_table_its_columns() -> None:
    assert all(name == problem.name for name, problem in make_problems().items())
    assert table(["a", "b"], [["1", "2"]]).count("|") == 9


def test_the_candidates_of_differential_equations_agree() -> None:
    case = benchmarks.ode.cases()[0]
    ours, plain = benchmarks.ode.by_symad(case, "LSODA", 1), benchmarks.ode.by_scipy(case, "LSODA", 1)
    for a, b in zip(ours.found, plain.found, strict=True):
        assert a == pytest.approx(b, rel=1e-3, abs=1e-3 * np.max(np.abs(b)))
    assert min(ours.seconds, ours.build, plain.seconds) > 0


def test_a_cluster_survives_a_killed_worker() -> None:
    pytest.importorskip("distributed")
    run = [sys.executable, "-m", "benchmarks.cluster", "--points", "2e6", "--workers", "2"]
    found = subprocess.run(run, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert found.returncode == 0, found.stderr
    assert "the sum has the bits of this process" in found.stdout
    assert "kernels compiled in each process: [1" in found.stdout
