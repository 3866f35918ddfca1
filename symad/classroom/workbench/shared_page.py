"""One self-contained page of the workbench: all panes of a question with their links, and exercises, without a server.

Everything is computed in this process. The scripts of the page are joined: each module becomes a function that returns
its exports, and imports become assignments. What the server would send stands in the page as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from graphlib import TopologicalSorter
from html import escape
from pathlib import Path
from typing import Any

from codegen.sealed import write_atomically
from symad.classroom.exercises.exercise import worksheet
from symad.classroom.workbench.desk import Desk
from symad.classroom.workbench.server import MODULES, about, page_file
from symad.classroom.workbench.titles import PANES
from symad.display.html import bare
from symad.errors import ArgumentError

EXERCISES = 5
_IMPORT = re.compile(r'^import \{(?P<names>[^}]*)\} from "\./(?P<module>\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|const|let|class) (\$|\w+))", re.MULTILINE)


def share(path: str | Path, state: Mapping[str, Any], *, topics: tuple[str, ...] = (), seconds: float = 30.0) -> Path:
    """Write the page of a question and return its path. Panes that fail say so, as in the workbench.

    `state` has the question's text, point, transform and order. `topics` are those of the exercises on the page.
    ArgumentError if the question itself cannot be read.
    """
    desk, answers = Desk("", allow_code=False, seconds=seconds), dict[str, Any]()
    for pane in PANES:
        answers[pane] = desk.carried_out({"pane": pane, "question": dict(state)}, lambda message: None)
        if "answer" in answers[pane]:
            answers[pane]["answer"]["forms"] = []  # files that a server would make
    if "error" in answers["formula"]:
        raise ArgumentError(answers["formula"]["error"])
    shared = {"about": about("", False, {}, []), "state": dict(state), "answers": answers}
    write_atomically(Path(path), _page(shared, _practice(topics)).encode())
    return Path(path)


def _practice(topics: tuple[str, ...]) -> str:
    """Return exercises with hints and solutions that open one by one."""
    parts = []
    for number, exercise in enumerate(worksheet(list(topics), count=EXERCISES).exercises if topics else (), 1):
        hints = "".join(
            f"<details><summary>Hint {k}</summary>{escape(hint)}</details>" for k, hint in enumerate(exercise.hints, 1)
        )
        solution = f"<details><summary>Solution</summary>{bare(exercise.solution.document()[1:])}</details>"
        parts.append(f"<h3>Exercise {number}</h3>{bare(exercise.question.asked())}{hints}{solution}")
    body = f'<div class="body" role="region" aria-label="Exercises" tabindex="0">{"".join(parts)}</div>'
    header = "<header><h2>Exercises</h2></header>"
    return f'<section class="pane wide" id="pane-exercises">{header}{body}</section>' if parts else ""


def _page(shared: Mapping[str, Any], practice: str) -> str:
    page = page_file("index.html")
    data = json.dumps(shared).replace("<", "\\u003c")
    script = f"globalThis.SHARED = {data};\n{_joined()}"
    page = page.replace('<link rel="stylesheet" href="workbench.css">', f"<style>{page_file('workbench.css')}</style>")
    page = page.replace('<script type="module" src="workbench.js"></script>', "")
    page = page.replace('class="symad-page bench"', 'class="symad-page bench shared"')
    page = page.replace("</main>", f"{practice}</main>")
    return page.replace("</body>", f'<script type="module">\n{script}\n</script>\n</body>')


def _joined() -> str:
    """Return the scripts of the page as one."""
    texts = {name: page_file(f"{name}.js") for name in MODULES}
    imports = {name: [match["module"] for match in _IMPORT.finditer(text)] for name, text in texts.items()}
    return "\n".join(_module(name, texts[name]) for name in TopologicalSorter(imports).static_order())


def _module(name: str, text: str) -> str:
    """Return a script as a function that returns its exports; the last one as it is."""
    names = ", ".join(match[2] for match in _EXPORT.finditer(text))
    text = _EXPORT.sub(r"\1", _IMPORT.sub(lambda match: f"const {{{match['names']}}} = of_{match['module']};\n", text))
    return text if name == "workbench" else f"const of_{name} = (() => {{\n{text}\nreturn {{ {names} }};\n}})();"
