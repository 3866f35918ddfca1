"""The table of styles of roles, verdicts and emphasis, in a terminal, on paper and in a browser.

The colours are those of Okabe and Ito ("Color Universal Design", 2008), darkened where white paper asks for it: readers
who do not see red or green tell them apart. Colour never stands alone: a role has a letter too, and its level.

The stylesheet of pages and notebooks, made from the table of styles: light and dark ground, screen and paper. A page
follows the wish of the reader's system. A fragment in a notebook follows the notebook, whose theme need not be that of
the system: dark text on a dark ground, or light on light, would be the price.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from codegen.records import dataclass

Style = Literal[
    "primal", "parameter", "residual", "tangent", "cotangent", "epsilon", "right", "wrong", "strong", "muted", "code"
]


@dataclass(frozen=True)
class Look:
    """A colour for light ground and one for dark ground (six hexadecimal digits), and the letter of a role."""

    light: str = ""
    dark: str = ""
    letter: str = ""
    bold: bool = False


SANS = "system-ui, 'DejaVu Sans', 'Segoe UI', Arial, sans-serif"
PRINTED_SANS = "DejaVu Sans"  # in files of dots and for print: one font, that has the signs of mathematics
GROUND = Look("FFFFFF", "16181C")  # of a page
LOOKS: dict[Style, Look] = {
    "primal": Look("1A1A1A", "E8E8E8", "P"),
    "parameter": Look("6B4C9A", "B9A3E3", "A"),
    "residual": Look("8A6100", "E69F00", "R"),
    "tangent": Look("0060A0", "56B4E9", "T"),
    "cotangent": Look("B34700", "FF9A5C", "C"),
    "epsilon": Look("007A5E", "3CCBA0"),
    "right": Look("00724F", "3CCBA0", bold=True),
    "wrong": Look("B00020", "FF7B8A", bold=True),
    "strong": Look(bold=True),
    "muted": Look("666666", "A0A0A0"),
    "code": Look(),
}

# The symbol of a level is told from those of other levels by colour too; there are colours for six.
LEVELS: tuple[Look, ...] = (
    LOOKS["epsilon"],
    Look("9C2E7C", "E48FC8"),
    Look("8A6100", "E69F00"),
    Look("0060A0", "56B4E9"),
    Look("B34700", "FF9A5C"),
    Look("5A5A5A", "B8B8B8"),
)


def look_of(style: Style, level: int = 0) -> Look:
    """Return the look of a style. The symbols of levels have one colour for each level.

    >>> look_of("epsilon", 2).light, look_of("tangent", 2).light
    ('9C2E7C', '0060A0')
    """
    return LEVELS[(level - 1) % len(LEVELS)] if style == "epsilon" and level > 0 else LOOKS[style]


def class_of(style: Style, level: int = 0) -> str:
    """Return the names of a style in a stylesheet.

    >>> class_of("wrong"), class_of("epsilon", 2)
    ('wrong', 'epsilon level-2')
    """
    return f"epsilon level-{(level - 1) % len(LEVELS) + 1}" if style == "epsilon" and level > 0 else style


# How JupyterLab, VS Code, Colab, marimo and Sphinx say that their ground is dark.
_DARK_NOTEBOOKS = (
    '[data-jp-theme-light="false"]', ".vscode-dark", ".vscode-high-contrast", 'html[theme="dark"]', ".dark",
    '[data-theme="dark"]',
)  # fmt: skip


def _colours(ground: str) -> str:
    named = [("ground", GROUND), *LOOKS.items()]
    levels = [(f"level-{k}", look) for k, look in enumerate(LEVELS, 1)]
    return "".join(f"--{name}:#{getattr(look, ground)};" for name, look in [*named, *levels] if look.light)


def _stylesheet() -> str:
    coloured = "\n".join(
        f".symad .{name}{{{f'color:var(--{name});' if look.light else ''}{'font-weight:600;' if look.bold else ''}}}"
        for name, look in LOOKS.items()
        if look.light or look.bold
    )
    levels = "\n".join(f".symad .level-{k}{{color:var(--level-{k})}}" for k in range(1, len(LEVELS) + 1))
    notebooks = ",".join(f"{theme} .symad" for theme in _DARK_NOTEBOOKS)
    grounds = (
        f".symad,.symad-page{{{_colours('light')}}}\n{notebooks}{{{_colours('dark')}}}\n"
        f"@media (prefers-color-scheme:dark){{.symad-page,.symad-page .symad{{{_colours('dark')}}}}}\n"
        f"@media print{{.symad.symad,.symad-page.symad-page{{{_colours('light')}}}}}\n"
    )
    return f"{grounds}{coloured}\n{levels}\n{_rules('parts.css')}"


def _rules(name: str) -> str:
    """Return a stylesheet beside this file, without the comment at its head."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8").partition("*/\n")[2]


STYLESHEET, PAGE_STYLESHEET = _stylesheet(), _rules("page.css")
