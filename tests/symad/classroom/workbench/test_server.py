"""The server: its own page only, nothing runs away, nothing is left over, and no request waits for another for ever."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from symad.classroom.workbench.server import PAGE
from symad.classroom.workbench.titles import PANES
from tests.support.cairo import NEEDS_CAIRO
from tests.support.notebooks import read_notebook
from tests.support.workbench import ROOT, Bench, started

SLOW = "+".join(f"sin({k}*x*y)*exp(y/{k})*cos(x+{k}*y)" for k in range(1, 60))  # whose errors take many seconds


def test_the_page_needs_its_token(bench: Bench) -> None:
    assert bench.ask("GET", bench.path)[0] == 200
    other = bench.path[:-2] + ("y/" if bench.path[-2] == "x" else "x/")  # the token is random, and may end in x
    for path in ("/", "/index.html", "/wrong/", other, bench.path.rstrip("/"), "/../" + bench.path):
        status, headers, content = bench.ask("GET", path)
        assert status == 403, path
        assert bench.path.strip("/") not in str(headers) + content.decode()
    assert bench.ask("POST", "/pane/formula", {"text": "x"})[0] == 403
    assert bench.ask("GET", "/about.json")[0] == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_others_are_refused(bench: Bench, headers: dict[str, str]) -> None:
    """A page of another origin, and a name that was bound to this address, get nothing, even with the token."""
    assert bench.ask("POST", bench.path + "pane/formula", {"text": "x"}, headers)[0] == 403
    assert bench.ask("GET", bench.path + "about.json", None, headers)[0] == 403


def test_its_own_origin_is_answered(bench: Bench) -> None:
    own = {"Origin": f"http://127.0.0.1:{bench.port}", "Sec-Fetch-Site": "same-origin"}
    assert bench.ask("POST", bench.path + "pane/formula", {"text": "x"}, own)[0] == 200


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"{", {}), (b"[1]", {}), (b"", {}), (b"x" * 70_000, {}), (b"{}", {"Content-Type": "text/plain"}),
        (b"[" * 60_000, {}),
    ],
)  # fmt: skip
def test_what_is_no_question_is_refused(bench: Bench, body: bytes, headers: dict[str, str]) -> None:
    assert bench.ask("POST", bench.path + "pane/formula", body, headers)[0] == 400


def test_nothing_else_is_there(bench: Bench) -> None:
    for path in ("server.py", "../server.py", "page/index.html", "%2e%2e/server.py", "export", "export/graph.svg"):
        assert bench.ask("GET", bench.path + path)[0] in (400, 403, 404), path
    assert bench.ask("DELETE", bench.path)[0] == 501
    assert "error" in bench.pane("nothing", text="x")


def test_the_page_asks_nobody_else(bench: Bench) -> None:
    """The policy lets it talk to its own server only, run no script but its own, and no page frames it."""
    _, headers, page = bench.ask("GET", bench.path)
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert {path.name for path in (ROOT / "symad" / "classroom" / "workbench" / "page").iterdir()} == set(PAGE.values())
    for name in PAGE:
        text = bench.ask("GET", bench.path + name)[2].decode()
        for word in ("http://", "https://", "//cdn", "@import", "url("):
            assert word not in text.replace("http://www.w3.org", ""), (name, word)
    assert b"<script>" not in page
    assert b"style=" not in page


@NEEDS_CAIRO
@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".pdf", b"%PDF-")])
def test_pictures_are_exported(bench: Bench, suffix: str, start: bytes) -> None:
    question = quote(json.dumps({"text": "x*sin(x)"}))
    status, headers, content = bench.ask("GET", f"{bench.path}export/graph{suffix}?question={question}")
    assert status == 200
    assert content.startswith(start)
    assert "graph" in headers["Content-Disposition"]


def test_exports_are_whole_files(bench: Bench) -> None:
    question = quote(json.dumps({"text": "x*sin(x)"}))
    for name, start in (
        ("graph.svg", b"<svg"), ("stages.html", b"<!DOCTYPE html>"),
        ("expansion.tex", b"\\documentclass"),
        ("program.txt", b"Program of"), ("routes.csv", b"route,"), *((f"{pane}.ipynb", b"{") for pane in PANES),
    ):  # fmt: skip
        status, headers, content = bench.ask("GET", f"{bench.path}export/{name}?question={question}")
        assert status == 200
        assert content.startswith(start)
        assert name.split(".")[0] in headers["Content-Disposition"]
        if name.endswith(".ipynb"):
            read_notebook(content.decode())
    for bad in ("graph.exe", "graph", "stages.svg", "..%2fgraph.svg"):
        assert bench.ask("GET", f"{bench.path}export/{bad}?question={question}")[0] == 400, bad
    status, _, content = bench.ask("GET", f"{bench.path}export/graph.svg?question={quote(json.dumps({'text': '('}))}")
    assert status == 400
    assert b"Traceback" not in content


def test_fifty_requests_at_once(bench: Bench) -> None:
    def ask(k: int) -> bool:
        found = bench.pane("formula", text=f"sin({k}*x)", transform="grad")
        return "answer" in found and f"{k}" in found["answer"]["html"]

    begun = time.monotonic()
    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(ask, range(1, 51)))
    assert time.monotonic() - begun < 20


def workers_of(bench: Bench) -> set[int]:
    """Return the numbers of the processes that the workbench has, its own left out."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout.split()[2:]
    parents = dict(zip(map(int, listed[::2]), map(int, listed[1::2]), strict=True))
    found, grows = {bench.process.pid}, True
    while grows:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found, grows = found | more, bool(more)
    return found - {bench.process.pid}


def begin(bench: Bench, pane: str, text: str) -> socket.socket:
    """Send a question, and leave it open."""
    connection = http.client.HTTPConnection("127.0.0.1", bench.port, timeout=600)
    body = json.dumps({"text": text, "transform": "hessian"})
    connection.request("POST", f"{bench.path}pane/{pane}", body, {"Content-Type": "application/json"})
    assert connection.sock is not None
    return connection.sock


def test_a_request_that_nobody_waits_for_is_ended(bench: Bench) -> None:
    """As many long requests as there are processes are left; another is answered soon, and progress came before."""
    bench.pane("formula", text="x")
    sockets = [begin(bench, "errors", SLOW) for _ in range(4)]
    first = sockets[0].makefile("rb")
    while b"progress" not in first.readline():
        pass
    for each in (first, *sockets):
        each.close()
    begun = time.monotonic()
    assert "answer" in bench.pane("formula", text="x^2")
    assert time.monotonic() - begun < 30  # they would take minutes


def test_a_process_that_ends_in_the_middle_is_said_and_replaced(bench: Bench) -> None:
    bench.pane("formula", text="x")
    before = workers_of(bench)
    connection = begin(bench, "errors", SLOW)
    lines = connection.makefile("rb")
    while b"progress" not in lines.readline():
        pass
    for pid in before:
        with contextlib.suppress(FileNotFoundError):  # of a process that has ended since
            if b"forkserver" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                continue
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            for child in map(int, children):
                os.kill(child, 9)
    rest = lines.read()
    lines.close()
    connection.close()
    assert b"has ended" in rest
    assert "answer" in bench.pane("formula", text="x^2")


def test_a_time_limit_is_said_and_processes_end_with_the_workbench(tmp_path: Path) -> None:
    """Also where it is killed in the middle of a computation."""
    path = tmp_path / "model.py"
    path.write_text("import signal\ndef f(x=0.5):\n    signal.raise_signal(signal.SIGALRM)\n    return x\n")
    with started(f"{path}:f", "--max-seconds", "600") as bench:
        assert "longer than 600 s" in bench.pane("formula", kind="file")["error"]
        assert "answer" in bench.pane("formula", text="x")
        left = workers_of(bench)
        assert left
        connection = begin(bench, "errors", SLOW)
        bench.process.kill()
        connection.close()
        end = time.monotonic() + 600
        while any(Path(f"/proc/{pid}").exists() and b"Z" not in _state(pid) for pid in left):
            assert time.monotonic() < end
            time.sleep(0.05)


def _state(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return b"Z"


def test_a_command_line_that_cannot_be_used(bench: Bench) -> None:
    for arguments in (["nowhere.py:f"], ["--port", "99999"], ["--port", str(bench.port)]):
        command = [sys.executable, "-m", "symad", "workbench", "--no-browser", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), (arguments, done.stderr)
