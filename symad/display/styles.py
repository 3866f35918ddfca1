"""The table of styles of roles, verdicts and emphasis, in a terminal, on paper and in a browser.

The colours are those of Okabe and Ito ("Color Universal Design", 2008), darkened where white paper asks for it: readers
who do not see red or green tell them apart. Colour never stands alone: a role has a letter too, and its level.

The stylesheet of pages and notebooks, made from the table of styles: light and dark ground, screen and paper. A page
follows the wish of the reader's system. A fragment in a notebook follows the notebook, whose theme need not be that of
the system: dark text on a dark ground, or light on light, would be the price.
"""

from __future__ import annotations

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

_RULES = """\
.symad h1{font-size:1.55em;margin:.2em 0 .6em;line-height:1.2}
.symad h2{font-size:1.22em;margin:1.4em 0 .4em;line-height:1.25}
.symad h3{font-size:1.05em;margin:1.2em 0 .3em}
.symad h4,.symad h5,.symad h6{font-size:1em;margin:1em 0 .3em}
.symad p{margin:.5em 0;max-width:75ch;overflow-wrap:break-word}
.symad math{font-family:"STIX Two Math","Cambria Math","Latin Modern Math","DejaVu Math TeX Gyre",math;font-size:1.12em}
.symad .formula{margin:.4em 0;padding:.3em 0 .3em 3.5em;text-indent:-2em;overflow:auto hidden;line-height:2}
.symad .formula>*{text-indent:0}
.symad .struck{color:var(--muted);background:linear-gradient(to top right,transparent calc(50% - .06em),\
var(--wrong) calc(50% - .03em),var(--wrong) calc(50% + .03em),transparent calc(50% + .06em));\
-webkit-print-color-adjust:exact;print-color-adjust:exact}
.symad summary{cursor:pointer;font-weight:600;margin:1em 0 .3em}
.symad .equals{margin:0 .45em}
.symad .together{white-space:nowrap}
.symad .reason{display:inline-block;margin-left:2em;color:var(--muted);font-size:.92em;line-height:1.4}
.symad .table{overflow-x:auto}
.symad table{border-collapse:collapse;margin:.6em 0;font-variant-numeric:tabular-nums;font-size:1em}
.symad .caption{color:var(--muted);margin:.6em 0 0}
.symad thead,.symad tbody,.symad tr{background:none}
.symad th{border-bottom:2px solid var(--muted);padding:.25em 1em .25em 0;font-weight:600;vertical-align:bottom}
.symad thead td{border-bottom:2px solid var(--muted)}
.symad td{border-bottom:1px solid #8884;padding:.42em 1em .42em 0;vertical-align:baseline;\
overflow-wrap:break-word}
.symad .to-left,.symad table .to-left{text-align:left}
.symad .to-center,.symad table .to-center{text-align:center}
.symad .to-right,.symad table .to-right{text-align:right}
.symad pre{background:#8881;color:inherit;padding:.7em 1em;overflow-x:auto;line-height:1.35;margin:.6em 0}
.symad pre,.symad code{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;font-size:.92em}
.symad pre code{font-size:1em;background:none;color:inherit;padding:0}
.symad figure{margin:1em 0;overflow-x:auto}
.symad svg{max-width:100%;height:auto}
.symad .blank{break-inside:avoid;break-before:avoid}
.symad .blank hr{height:1.9em;margin:0;border:0;border-bottom:1px dotted #888a}
.symad .columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,14em),1fr));gap:1.2em}
.symad .columns section{border-top:3px solid #8886;padding-top:.4em;min-width:0}
.symad .columns h2{font-size:1.05em;margin:1.2em 0 .3em}
.symad .columns section>:first-child{margin-top:.2em}
@media print{
.symad .formula,.symad .table,.symad pre,.symad figure{overflow:visible}
.symad pre{white-space:pre-wrap}
.symad tr,.symad figure,.symad .formula,.symad section{break-inside:avoid}
.symad h1,.symad h2,.symad h3,.symad thead,.symad p:has(+.formula){break-after:avoid}
}
"""
# A part that is wider than the page scrolls; a shadow at its edge says that there is more. What covers the shadow at
# the ends moves with the content. Pictures keep their size on a phone, so that their labels can be read.
PAGE_STYLESHEET = """
.symad-page .table,.symad-page .formula,.symad-page figure{--edge:color-mix(in srgb,var(--primal) 34%,transparent);
background:linear-gradient(to right,var(--ground) 40%,transparent) left/2.4em 100% no-repeat local,
linear-gradient(to left,var(--ground) 40%,transparent) right/2.4em 100% no-repeat local,
linear-gradient(to right,var(--edge),transparent) left 1px top 1px/.7em calc(100% - 3px) no-repeat scroll,
linear-gradient(to left,var(--edge),transparent) right 1px top 1px/.7em calc(100% - 3px) no-repeat scroll}
:root{color-scheme:light dark}
body{font:18px/1.5 system-ui,"DejaVu Sans",sans-serif;margin:0;background:var(--ground);color:var(--primal)}
main{max-width:1180px;margin:0 auto;padding:1.2em 1.6em 3em}
.symad-page .symad svg{max-width:none}
.symad-page .symad figure{text-align:center}
.symad-page.big{font-size:27px}
.symad-page.big main{max-width:none;padding:.6em 1em 2em}
.symad-page.big .symad p{max-width:none}
.symad-page.big .symad svg{zoom:1.4}
@media (max-width:640px){main{padding:.8em .8em 2em}.symad-page .symad .formula{padding-left:1.6em;text-indent:-1.2em}
.symad-page .symad .reason{margin-left:1em}.symad-page .symad svg.filled{max-width:100%}
.symad-page .symad svg.filled:not(.narrow){min-width:500px}}
@media (min-width:1700px){body{font-size:22px}main{max-width:1500px}}
@page{margin:18mm 16mm}
@media print{.symad-page .symad svg{max-width:100%}
:root{color-scheme:light}body{font-size:11pt}main{max-width:none;padding:0}}
"""


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
    return f"{grounds}{coloured}\n{levels}\n{_RULES}"


STYLESHEET = _stylesheet()
