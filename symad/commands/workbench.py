"""`symad workbench`: start the workbench in the browser."""

from __future__ import annotations

import argparse
import re
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from codegen.later import Deferred
from symad.classroom.lessons.lesson_cells import lesson_path
from symad.classroom.workbench.server import Workbench
from symad.commands.names import FILE
from symad.errors import ArgumentError
from symad.limits import LONGEST

if TYPE_CHECKING:
    from symad.classroom.workbench import shared_page
else:
    shared_page = Deferred("symad.classroom.workbench.shared_page")  # which computes all panes


def declare_workbench(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad workbench`."""
    command.add_argument("target", nargs="?", default="", metavar="FORMULA or FILE.py:FUNCTION", help="what to open")
    command.add_argument("--lesson", type=int, metavar="NUMBER", help="open a lesson, in steps, beside the panes")
    command.add_argument("--step", type=int, metavar="NUMBER", help="with --lesson: the step to begin with")
    what = "write one page without a server: all panes of the formula, linked; no browser is opened"
    command.add_argument("--share", metavar="FILE", help=what)
    command.add_argument("--at", default="", metavar="POINT", help='with --share: the point, such as "x=2"')
    command.add_argument("--order", type=int, default=1, help="with --share: the order of the derivative (default 1)")
    what = "with --share: add exercises with hints and solutions"
    command.add_argument("--exercises", nargs="+", default=[], metavar="TOPIC", help=what)
    command.add_argument("--port", type=int, default=0, help="the port (default: a free one)")
    command.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
    command.add_argument("--allow-code", action="store_true", help="run Python code that is typed in the page")
    what = "for one pane (default 30), then it is stopped"
    command.add_argument("--max-seconds", dest="seconds", type=float, default=30.0, help=what)
    command.set_defaults(max_seconds=LONGEST / 2)


def run_workbench(options: argparse.Namespace) -> int:
    """Carry out `symad workbench` until Ctrl-C; exit status 0."""
    if options.share:
        return _share(options)
    file = options.target if re.fullmatch(FILE, options.target) else ""
    if file and not (path := Path(file.rpartition(":")[0])).is_file():
        raise ArgumentError(f"no file {str(path)!r}", where=str(Path.cwd()), do="check the path")
    state = _lesson(options) or ({"kind": "file"} if file else {"text": options.target} if options.target else {})
    bench = Workbench(file, port=options.port, allow_code=options.allow_code, seconds=options.seconds)
    address = bench.address + (f"#{urlencode(state)}" if state else "")
    print(f"workbench: {address}\n(Ctrl-C ends it)", flush=True)
    if not options.no_browser:
        webbrowser.open(address)
    try:
        bench.serve_forever()
    except KeyboardInterrupt:
        print()
    finally:
        bench.server_close()
    return 0


def _share(options: argparse.Namespace) -> int:
    """Write one page of a formula."""
    if not options.target or options.lesson is not None or re.fullmatch(FILE, options.target):
        raise ArgumentError("--share without a formula", do='write: symad workbench --share page.html "x sin(x)"')
    state = {"text": options.target, "point": options.at, "transform": "derivative", "order": options.order}
    path = shared_page.share(options.share, state, topics=tuple(options.exercises), seconds=options.seconds)
    print(f"wrote {path}: open it in any browser")
    return 0


def _lesson(options: argparse.Namespace) -> dict[str, str]:
    """Return the page state of a lesson; ArgumentError for an unknown one."""
    if options.lesson is None:
        if options.step is not None:
            raise ArgumentError("--step without a lesson", do="give --lesson NUMBER too")
        return {}
    if options.target:
        raise ArgumentError(f"a lesson and {options.target!r}", do="give one of the two")
    lesson_path(options.lesson)
    return {"lesson": str(options.lesson), **({} if options.step is None else {"at": str(options.step)})}
