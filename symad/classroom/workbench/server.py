"""The server of the page: on the loopback address, behind a token. It fetches nothing.

| request | answer |
|---|---|
| `GET /TOKEN/`, its scripts and styles, `.../about.json` | the page, and what it was started with |
| `POST /TOKEN/pane/NAME`, a question as JSON | lines of JSON: progress, then an answer or an error |
| `POST /TOKEN/pane/lesson-NUMBER` | the steps of a lesson, each again when its code was run |
| `POST /TOKEN/pane/practice` | an exercise, verdicts on the lines of an answer, hints |
| `GET /TOKEN/export/NAME.SUFFIX?question=...` | a pane as a file |
| anything else: no token, another host, another origin | 403 |
"""

from __future__ import annotations

import hmac
import json
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from symad.classroom.exercises.topics import topics
from symad.classroom.lessons.lesson_cells import titles
from symad.classroom.workbench.processes import GONE, Workshop
from symad.classroom.workbench.titles import HIGHEST_ORDER, LONGEST_TEXT, PANES, TITLES
from symad.display.styles import LOOKS, PAGE_STYLESHEET, STYLESHEET
from symad.errors import ArgumentError
from symad.version import __version__

ADDRESS = "127.0.0.1"
LONGEST_BODY = 64_000
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}  # fmt: skip
TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".json": "application/json; charset=utf-8", ".svg": "image/svg+xml", ".tex": "application/x-tex; charset=utf-8",
    ".txt": "text/plain; charset=utf-8", ".md": "text/markdown; charset=utf-8", ".csv": "text/csv; charset=utf-8",
    ".ipynb": "application/x-ipynb+json; charset=utf-8", ".png": "image/png", ".pdf": "application/pdf",
}  # fmt: skip
MODULES = ("workbench", "address", "elements", "error_range", "expansion_steps", "lessons", "links", "practice")
PAGE = {"": "index.html", "workbench.css": "workbench.css", **{f"{name}.js": f"{name}.js" for name in MODULES}}


def about(file: str, allow_code: bool, lessons: Any, topics: list[str]) -> dict[str, Any]:
    """Return the settings of a page."""
    return {
        "version": __version__, "file": file, "allow_code": allow_code, "panes": list(PANES), "lessons": lessons,
        "highest_order": HIGHEST_ORDER, "longest": LONGEST_TEXT, "transforms": TITLES, "topics": topics,
    }  # fmt: skip


class Workbench(ThreadingHTTPServer):
    """A running workbench. `address` contains its token."""

    daemon_threads = True
    request_queue_size = 128
    workshop: Workshop | None = None

    def __init__(self, file: str = "", *, port: int = 0, allow_code: bool = False, seconds: float = 30.0) -> None:
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            raise ArgumentError(f"port {port}", why=str(error), do="choose another --port") from error
        self.token = secrets.token_urlsafe(24)
        self.port = self.server_address[1]
        self.file, self.allow_code = file, allow_code
        self.workshop = Workshop(file, allow_code, seconds)

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{ADDRESS}:{self.port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that leave. Print any other error as one line, without a traceback."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"symad: workbench: {type(error).__name__}: {error}", file=sys.stderr)

    def server_close(self) -> None:
        super().server_close()
        if self.workshop is not None:  # None if the port was not available
            self.workshop.close()


class _Handler(BaseHTTPRequestHandler):
    server: Workbench
    server_version, sys_version = "symad", ""
    timeout = 60.0  # seconds for a request to come in

    @property
    def _workshop(self) -> Workshop:
        assert self.server.workshop is not None
        return self.server.workshop

    def do_GET(self) -> None:
        if (parts := self._allowed()) is None:
            return
        path, query = parts
        if path in PAGE:
            self._send(page_file(PAGE[path]).encode(), f".{PAGE[path].rpartition('.')[2]}")
        elif path == "about.json":
            settings = about(self.server.file, self.server.allow_code, titles(), list(topics()))
            self._send(json.dumps(settings).encode(), ".json")
        elif path.startswith("export/"):
            self._export(path.removeprefix("export/"), query)
        else:
            self._refused(HTTPStatus.NOT_FOUND, "there is nothing here")

    def do_POST(self) -> None:
        if (parts := self._allowed()) is None:
            return
        if (question := self._question()) is None:
            return
        path = parts[0]
        if not path.startswith("pane/"):
            self._refused(HTTPStatus.NOT_FOUND, "there is nothing here")
            return
        self._begin(HTTPStatus.OK, {"Content-Type": "application/x-ndjson"})
        request = {"pane": path.removeprefix("pane/"), "question": question}
        self._workshop.carry_out(request, self._line, self.connection)

    def _allowed(self) -> tuple[str, str] | None:
        """Return the path after the token, and the query; None after a refusal."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        split = urlsplit(self.path)
        _, _, rest = split.path.partition("/")
        token, slash, path = rest.partition("/")
        right = hmac.compare_digest(token.encode(), self.server.token.encode())
        known = host in (f"{name}:{self.server.port}" for name in (ADDRESS, "localhost"))
        own = known and origin in (None, f"http://{host}")
        if not right or not slash:
            self._refused(HTTPStatus.FORBIDDEN, "the address has a token in it, which was printed when this started")
        elif not own or (path and self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")):
            self._refused(HTTPStatus.FORBIDDEN, "this answers its own page only")
        else:
            return path, split.query
        return None

    def _question(self) -> Any:
        """Return the JSON of a request; None after a refusal."""
        length = self.headers.get("Content-Length", "")
        kind = self.headers.get("Content-Type", "").partition(";")[0]
        if kind != "application/json" or not length.isdecimal() or int(length) > LONGEST_BODY:
            self._refused(HTTPStatus.BAD_REQUEST, f"a question is JSON of at most {LONGEST_BODY} bytes")
            return None
        return self._parsed(self.rfile.read(int(length)))

    def _parsed(self, text: str | bytes) -> Any:
        try:
            question = json.loads(text)
        except (ValueError, RecursionError):
            question = None
        if not isinstance(question, dict):
            self._refused(HTTPStatus.BAD_REQUEST, "a question is an object of JSON")
            return None
        return question

    def _export(self, name: str, query: str) -> None:
        if (question := self._parsed(parse_qs(query).get("question", [""])[0])) is None:
            return
        pane, dot, suffix = name.rpartition(".")
        messages = [GONE]
        request = {"pane": pane, "form": dot + suffix, "question": question}
        self._workshop.carry_out(request, messages.append, self.connection)
        if "file" not in messages[-1]:
            self._refused(HTTPStatus.BAD_REQUEST, messages[-1].get("error", ""))
            return
        disposition = f'attachment; filename="symad-{pane}.{suffix}"'
        self._send(messages[-1]["file"], dot + suffix, more={"Content-Disposition": disposition})

    def _line(self, message: dict[str, Any]) -> None:
        self.wfile.write(json.dumps(message).encode() + b"\n")
        self.wfile.flush()

    def _refused(self, status: HTTPStatus, why: str) -> None:
        self._send(f"{status.value} {status.phrase}: {why}\n".encode(), ".txt", status)

    def _send(
        self, content: bytes, suffix: str, status: HTTPStatus = HTTPStatus.OK, more: dict[str, str] | None = None
    ) -> None:
        self._begin(status, {"Content-Type": TYPES[suffix], **(more or {}), "Content-Length": str(len(content))})
        self.wfile.write(content)

    def _begin(self, status: HTTPStatus, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, **HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log: the terminal belongs to the user."""


def page_file(name: str) -> str:
    """Return a file of the page. Its stylesheet follows the common one and that of pictures."""
    text = files("symad.classroom.workbench").joinpath("page", name).read_text(encoding="utf-8")
    if not name.endswith(".css"):
        return text
    colours = ("ground", *LOOKS)
    pictures = "".join(f".symad-svg .{kind}-{c}{{{kind}:var(--{c})}}" for kind in ("fill", "stroke") for c in colours)
    return f"{PAGE_STYLESHEET}\n{STYLESHEET}\n{pictures}\n{text}"
