"""A workbench in a process of its own, and how its server is asked, for tests."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Bench:
    """A running workbench: its process and its address."""

    process: subprocess.Popen[str]
    address: str

    @property
    def port(self) -> int:
        return int(re.findall(r":(\d+)/", self.address)[0])

    @property
    def path(self) -> str:
        """The path with the token."""
        return "/" + self.address.split("/")[3] + "/"

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request to a path as it is given; return the status, the headers and the content."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        given = {"Content-Type": "application/json"} if body is not None else {}
        text = body if isinstance(body, bytes | str) or body is None else json.dumps(body)
        try:
            connection.request(method, path, text, {**given, **(headers or {})})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def pane(self, name: str, **question: Any) -> dict[str, Any]:
        """Return the last message about a pane."""
        status, _, content = self.ask("POST", f"{self.path}pane/{name}", question)
        assert status == 200, content
        found: dict[str, Any] = json.loads(content.splitlines()[-1])
        return found


@contextmanager
def started(*arguments: str) -> Iterator[Bench]:
    """Start a workbench, and end it."""
    command = [sys.executable, "-m", "symad", "workbench", "--no-browser", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield Bench(process, re.findall(r"http://\S+", line)[0])
    finally:
        process.terminate()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()
