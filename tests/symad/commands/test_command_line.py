"""The command line as people expect it: version, help with examples, exit statuses, JSON, completion, near words."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import shlex
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import symad as sa
from symad import cli
from symad.commands import running
from symad.commands.names import EXAMPLES, HELP

ROSENBROCK = f"{Path(__file__).parents[3] / 'examples' / 'rosenbrock.py'}:rosenbrock"


def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "symad", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, input=given)


def test_the_version() -> None:
    assert run("--version").stdout == f"symad {sa.__version__}\n"


def test_help_and_version_come_without_sympy() -> None:
    code = (
        "import sys, symad.cli\ntry: symad.cli.main([sys.argv[1]])\nexcept SystemExit: print(sorted({'sympy', 'numpy', "
    )
    code += "'llvmlite'} & sys.modules.keys()))"
    for option in ("--help", "--version"):
        found = subprocess.run([sys.executable, "-c", code, option], capture_output=True, text=True, check=True)
        assert found.stdout.splitlines()[-1] == "[]"


def test_help_lists_commands_and_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert all(f"    {name}" in out for name in HELP)
    assert "  130  interrupted" in out


@pytest.mark.parametrize("command", HELP)
def test_every_help_has_examples_that_are_command_lines(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    out = capsys.readouterr().out
    for example in EXAMPLES[command]:
        assert f"\n  {example}\n" in out
        words = shlex.split(example.partition(" > ")[0].partition(" < ")[0])
        assert words[0] == "symad"
        assert cli._parser(command).parse_args(words[1:]).command == command


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["hesian", "f"], "did you mean 'hessian'?"),
        (["expand", "x^2", "--directiosn", "v"], "did you mean '--directions'?"),
        (["expand", "x^2", "--detail", "stepps"], "did you mean 'steps'?"),
        (["hessian", "m.py:f", "--sparze"], "did you mean '--sparse'?"),
    ],
)
def test_near_words_are_proposed(typed: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(typed)
    assert ended.value.code == 2
    assert capsys.readouterr().err.rstrip().endswith(meant)


MODEL = "def wrong(x=1.0):\n    return {}[x]\n\n\ndef endless(x=9.0):\n    while x > 1: x = x / 2\n    return x\n"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["expand", "x^2"], 0),
        (["check", "x^2", "--answer", "answer.txt"], 1),
        (["verify", "sin(x)/x", "--at", "x=0"], 1),
        (["expand", "x^2", "--at", "y=1"], 2),
        (["hessian", "nowhere.py:f"], 2),
        (["hessian", "model.py:endless"], 3),
    ],
)
def test_statuses(arguments: list[str], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("answer.txt").write_text("3x")
    Path("model.py").write_text(MODEL)
    assert cli.main(arguments) == status


def test_what_takes_too_long_is_told_with_the_line_of_the_user(tmp_path: Path, capsys) -> None:
    """The function sends itself the signal that comes when the time is over, so that the line is known."""
    (tmp_path / "model.py").write_text("import signal\n\n\ndef f(x=1.0):\n    signal.raise_signal(signal.SIGALRM)\n")
    assert cli.main(["expand", f"{tmp_path}/model.py:f", "--max-seconds", "600"]) == 3
    assert re.fullmatch(
        r"symad: error: .*/model\.py:5: symad expand took longer than 600 s: .*\n", capsys.readouterr().err
    )


def test_what_takes_too_long_without_a_line_of_the_user_names_none(monkeypatch, capsys) -> None:
    ours = compile("lambda *args, **options: time.sleep(5.0)", running.__file__, "eval")
    monkeypatch.setattr("symad.expand", eval(ours, {"time": time}))
    assert cli.main(["expand", "x^2", "--max-seconds", "0.1"]) == 3
    assert capsys.readouterr().err.startswith("symad: error: symad expand took longer than 0.1 s: ")


def test_the_script_that_starts_the_command_line_is_no_place(tmp_path: Path) -> None:
    script = tmp_path / "symad"
    script.write_text("import sys\nfrom symad.cli import main\nsys.exit(main())\n")
    for name in (script, "symad"):  # as it was called: by its path, and from its own folder
        found = subprocess.run([sys.executable, name, "check", "x*y", "--answer", "-"], capture_output=True, text=True,
                               input="", check=False, cwd=tmp_path)  # fmt: skip
        assert found.returncode == 2
        assert found.stderr.startswith("symad: error: an empty answer; ")


@pytest.mark.parametrize(
    "words", [["expand", "x^2", "--html"], ["export", ROSENBROCK, "--directory"],
              ["hessian", ROSENBROCK, "--emit", "let", "--output"]],
)  # fmt: skip
def test_a_file_that_cannot_be_written_is_told_by_its_name(words, tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("")
    wanted = str(tmp_path / "file" / "page.html")
    assert cli.main([*words, wanted]) == 2
    assert capsys.readouterr().err.startswith(
        f"symad: error: cannot write {'to ' * (words[0] == 'export')}{wanted!r}: Not a dir"
    )


def test_a_point_without_all_variables_says_which(capsys) -> None:
    for command in ("verify", "compare"):
        assert cli.main([command, "x*y", "--at", "x=0"]) == 2
        assert "no number for y" in capsys.readouterr().err


def test_an_interrupt_has_its_status(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*limit: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "time_limit", interrupted)
    assert cli.main(["cache"]) == 130
    assert capsys.readouterr().err == "symad: interrupted\n"


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["expand", "x^2", "--at", "x=3"], {"flat", "directions"}),
        (["check", "x*sin(x)", "--answer", "answer.txt"], {"right", "steps"}),
        (["explain", "x*sin(x)"], {"stages", "name"}),
        (["draw", "x*sin(x)"], {"operations", "diagrams"}),
        (["compare", "exp(x)", "--at", "x=0.7"], {"rows", "reference"}),
        (["verify", "exp(x)", "--at", "x=0.7"], {"worst_ulp", "exact"}),
        (["verify", "exp(x)", "--box", "0", "1", "--points", "9"], {"worst_ulp"}),
        (["hessian", ROSENBROCK], {"values", "rows", "columns", "stages", "chosen"}),
        (["export", ROSENBROCK, "--directory", "out"], {"files"}),
        (["cache", "--folder", "kept"], {"entries", "folder"}),
    ],
)
def test_json_of_every_command_that_computes(
    arguments: list[str],
    names: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("answer.txt").write_text("sin(x) + x cos(x)")
    assert cli.main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["command"] == arguments[0]
    assert names <= found.keys()


def test_the_numbers_of_json_are_those_of_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["hessian", ROSENBROCK, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["values"][:4] == pytest.approx([1330.0, 480.0, 1082.0, -400.0])
    cli.main(["verify", "exp(x)", "--at", "x=0.7", "--json"])
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(2.0137527074704766)


def on_a_terminal(*arguments: str) -> tuple[str, str]:
    """Return what a command prints, and what it writes to a terminal as standard error."""
    main, other = pty.openpty()
    command = [sys.executable, "-m", "symad", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=other, text=True) as process:
        os.close(other)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal, on Linux
            while part := os.read(main, 4096):
                shown += part
        os.close(main)
        assert process.stdout is not None
        return process.stdout.read(), shown.decode()


@pytest.mark.wide
def test_a_terminal_shows_how_long_there_is_to_go() -> None:
    words = ["verify", "exp(sin(x))*erf(x)", "--box", "-9", "9", "--points", "8000", "--max-seconds", "600"]
    printed, shown = on_a_terminal(*words)
    assert re.search(r"symad verify: \d+ of 8000, \d+ s, \d+ s to go", shown)
    assert shown.endswith("\r\x1b[K")
    elsewhere = run(*words)
    assert (elsewhere.stdout, elsewhere.stderr) == (printed, "")


HAS_SHTAB = find_spec("shtab") is not None
needs_shtab = pytest.mark.skipif(not HAS_SHTAB, reason="pip install -e '.[completion]'")


def completed(*words: str) -> list[str]:
    """What bash proposes for the last word."""
    script = run("completion", "bash").stdout
    ask = f"COMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}; _shtab_symad; "
    ask += "printf '%s\\n' \"${COMPREPLY[@]}\""
    return subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True).stdout.split()


@needs_shtab
def test_completion_in_bash() -> None:
    assert sorted(completed("symad", "ex")) == ["exercise", "expand", "explain", "export"]
    assert completed("symad", "hessian", "--s") == ["--sparse"]
    assert completed("symad", "expand", "x^2", "--detail", "s") == ["steps"]


@needs_shtab
@pytest.mark.parametrize(("shell", "line"), [("zsh", "#compdef symad"), ("fish", "complete -c symad")])
def test_completion_in_other_shells(shell: str, line: str) -> None:
    found = run("completion", shell).stdout
    assert line in found
    assert all(command in found for command in HELP)
    assert len(re.findall(r"--sparse|-l sparse", found)) >= 2  # of hessian and export


@pytest.mark.skipif(HAS_SHTAB, reason="it is there")
def test_completion_names_its_extra() -> None:
    assert "pip install 'symad[completion]'" in run("completion", "bash").stderr


LATEX = "\\exp\\left(x \\sin x\\right)"
EVERY = [
    ["expand"], ["explain"], ["draw"], ["check", "--answer", "-"],
    ["compare", "--at", "x=0,5"], ["verify", "--at", "x=0,5"],
]  # fmt: skip


@pytest.mark.parametrize("words", EVERY, ids=lambda words: words[0])
def test_every_command_reads_the_same_notations(words: list[str], monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{LATEX} (\\sin x + x \\cos x)"))
    assert cli.main([words[0], LATEX, *words[1:]]) == 0
    said = capsys.readouterr().err
    assert ("symad: note: 0,5 is read as 0.5: a decimal comma" in said) == ("x=0,5" in words)
    assert cli.main([words[0], "x \\sin x y", *words[1:]]) == 2
    assert "write sin(x)·y or sin(x y), whichever is meant" in capsys.readouterr().err


def test_an_answer_has_the_names_of_the_question(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("x^2 + 2x v η"))
    assert cli.main(["check", "x^2", "--directions", "v", "--epsilons", "η", "--answer", "-"]) == 0
    assert cli.main(["check", "x^2", "--epsilons", "η", "--answer", "-"]) == 2
    assert "--epsilons of a derivative" in capsys.readouterr().err
