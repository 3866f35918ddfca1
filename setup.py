"""The wheel, in which the package `codegen` is `symad.codegen`; everything else is in pyproject.toml.

In the repository it is a package of its own. Installed under that name, it would share it with another package of the
index, and with any `codegen.py` beside a script: whichever comes first on the path would be imported for both. So the
names of modules in the code are put right when the wheel is made, token by token.
"""

from __future__ import annotations

import io
import re
import shutil
import tokenize
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

INNER, INSTALLED = "codegen", "symad.codegen"
_IN_TEXT = re.compile(rf"(\bfrom |\bimport |\bpython -m |`){INNER}\b(?=[ .])")  # examples and names in docstrings


def renamed(source: str) -> str:
    """Return code with the package under the name that it is installed under; what is not its name stays."""
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for k, token in reversed(list(enumerate(tokens))):
        if token.type == tokenize.NAME and token.string == INNER and (k == 0 or tokens[k - 1].string != "."):
            (line, start), (_, end) = token.start, token.end
            lines[line - 1] = lines[line - 1][:start] + INSTALLED + lines[line - 1][end:]
    return _IN_TEXT.sub(rf"\1{INSTALLED}", "".join(lines))


def put_inside(library: Path) -> None:
    """Move the inner package in a folder with both to its place, and put the names right in all code."""
    shutil.rmtree(library / "symad" / INNER, ignore_errors=True)
    shutil.move(library / INNER, library / "symad" / INNER)
    for path in (*library.rglob("*.py"), *library.rglob("*.pyi")):
        path.write_text(renamed(path.read_text(encoding="utf-8")), encoding="utf-8")


def add_lessons(repository: Path, library: Path) -> None:
    """Copy the lessons, which are examples in the repository, to where the installed package looks for them."""
    texts = library / "symad" / "classroom" / "lessons" / "texts"
    texts.mkdir(parents=True, exist_ok=True)
    for path in (repository / "examples" / "lessons").glob("[0-9]*.py"):
        shutil.copy(path, texts)


class Build(build_py):
    """Copies both packages as they are installed; an editable installation has them as they are in the repository."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            add_lessons(Path(__file__).parent, Path(self.build_lib))
            put_inside(Path(self.build_lib))


if __name__ == "__main__":
    setup(cmdclass={"build_py": Build})
