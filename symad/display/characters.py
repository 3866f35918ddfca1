"""Characters: what LaTeX or a plain terminal lacks is written otherwise."""

from __future__ import annotations

import re
import unicodedata

from codegen.visible import visible

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\textdollar{}", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "\n": " ", "\t": " ", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "·": r"$\cdot$",
    "×": r"$\times$", "−": "$-$", "±": r"$\pm$", "≤": r"$\leq$", "≥": r"$\geq$", "≠": r"$\neq$", "≈": r"$\approx$",
    "→": r"$\to$", "←": r"$\leftarrow$", "↦": r"$\mapsto$", "⇒": r"$\Rightarrow$", "∂": r"$\partial$",
    "∇": r"$\nabla$", "∞": r"$\infty$", "√": r"$\surd$", "∑": r"$\sum$", "∏": r"$\prod$", "∫": r"$\int$",
    "∈": r"$\in$", "⟨": r"$\langle$", "⟩": r"$\rangle$", "′": "$'$", "″": "$''$", "…": r"\dots{}", "–": "--",
    "—": "---", "✓": r"$\surd$", "✗": r"$\times$", "°": r"\textdegree{}", "µ": r"$\mu$", "•": r"\textbullet{}",
    "½": r"$\frac12$", "‘": "`", "’": "'", "“": "``", "”": "''", "\N{NO-BREAK SPACE}": "~", "\N{THIN SPACE}": r"\,",
    "∘": r"$\circ$", "⊗": r"$\otimes$", "ᵀ": r"$^{\mathsf T}$", "ϵ": r"$\epsilon$", "ε": r"$\varepsilon$",
    "φ": r"$\varphi$", "ϕ": r"$\phi$", "§": r"\S{}", "∼": r"$\sim$", "≡": r"$\equiv$", "‖": r"$\|$", "∥": r"$\|$",
}  # fmt: skip
_PLAIN = {
    "─": "-", "━": "-", "╌": "-", "═": "=", "╶": "-", "╴": "-", "╸": "-", "╺": "-", "│": "|", "┃": "|", "║": "|",
    "−": "-", "–": "-", "—": "--", "·": "*", "×": "x", "•": "*", "±": "+-", "≤": "<=", "≥": ">=", "≠": "!=",
    "≈": "~=", "→": "->", "←": "<-", "↦": "|->", "⇒": "=>", "∂": "d", "∇": "grad", "∞": "inf", "′": "'", "″": "''",
    "‘": "'", "’": "'", "“": '"', "”": '"', "✓": "ok", "✗": "x", "●": "*", "○": "o", "■": "#", "█": "#", "▓": "#",
    "▒": "+", "░": ".", "…": "...", "∘": "o", "½": "1/2", "ß": "ss",
}  # fmt: skip
_GREEK = re.compile(r"GREEK (SMALL|CAPITAL) LETTER (\w+)$")
_RAISED, _LOWERED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿ]+"), re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋]+")
_LIKE_LATIN = dict(zip(  # letters for which LaTeX has no commands
    ("Alpha", "Beta", "Epsilon", "Zeta", "Eta", "Iota", "Kappa", "Mu", "Nu", "Omicron", "Rho", "Tau", "Chi", "omicron"),
    "ABEZHIKMNOPTXo", strict=True,
))  # fmt: skip


def latex_text(text: str) -> str:
    r"""Return prose for LaTeX: what has a meaning there is written out, what it cannot set is named by its number.

    >>> latex_text("a_b & 50%, ε₁² ≤ é"), latex_text("変")
    ('a\\_b \\& 50\\%, $\\varepsilon _{1} ^{2}$ $\\leq$ é', '[U+5909]')
    """
    return "".join(map(_latex, visible(text))).replace("$$", " ")


def latex_code(text: str) -> str:
    r"""Return one line of a program for LaTeX, in a typewriter face: every space and quote as it is.

    >>> latex_code("x  = -y--'")
    'x~~=~{-}y{-}{-}\\textquotesingle{}'
    """
    apart = {" ": "~", "'": r"\textquotesingle{}", "-": "{-}", ",": "{,}", "~": r"\textasciitilde{}"}
    return "".join(apart.get(c) or _latex(c) for c in visible(text))


def ascii_text(text: str) -> str:
    """Return text in ASCII; what stands above or below the line keeps a sign of it.

    >>> ascii_text("─ ε₁ → 10⁻⁸ é 変")
    '- eps_1 -> 10^-8 e ?'
    """
    if text.isascii():
        return text
    return "".join(map(_ascii, _RAISED.sub(lambda run: "^" + run[0], _LOWERED.sub(lambda run: "_" + run[0], text))))


def can_encode(encoding: str | None, text: str) -> bool:
    """Whether a stream of this encoding takes a text.

    >>> can_encode("utf-8", "→"), can_encode("latin-1", "→"), can_encode("latin-1", "é")
    (True, False, True)
    """
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def greek_name(character: str) -> str:
    """Return the English name of a Greek letter as SymPy spells it, capitals with a capital; "" for anything else.

    >>> greek_name("λ"), greek_name("Ω"), greek_name("a")
    ('lambda', 'Omega', '')
    """
    found = _GREEK.match(unicodedata.name(character, ""))
    name = found[2].lower().replace("lamda", "lambda") if found else ""
    return name.capitalize() if found and found[1] == "CAPITAL" else name


def _latex(character: str) -> str:
    if character in _LATEX:
        return _LATEX[character]
    if character.isascii() or (character.isalpha() and "À" <= character <= "ž"):
        return character
    compatible = unicodedata.normalize("NFKC", character)
    kind = unicodedata.decomposition(character).partition(">")[0]
    if kind in ("<sub", "<super") and compatible.isascii():
        return f"${'_' if kind == '<sub' else '^'}{{{compatible}}}$"
    name = greek_name(compatible) if len(compatible) == 1 else ""
    if name:
        return rf"$\{name}$" if name not in _LIKE_LATIN else f"$\\mathrm{{{_LIKE_LATIN[name]}}}$"
    if len(compatible) == 1 and compatible != character:
        return _latex(compatible)
    return f"[U+{ord(character):04X}]"


def _ascii(character: str) -> str:
    if character.isascii() or character in _PLAIN:
        return _PLAIN.get(character, character)
    if unicodedata.name(character, "").startswith("BOX DRAWINGS"):
        return "+"
    parts = unicodedata.normalize("NFKD", character)
    base = parts[0]
    if any(not unicodedata.combining(mark) for mark in parts[1:]):
        return "?"
    if base.isascii() or base in _PLAIN:
        return _PLAIN.get(base, base)
    return greek_name(base).replace("epsilon", "eps") or "?"
