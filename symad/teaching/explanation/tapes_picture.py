"""The picture of the tapes: for each design a bar for the life of each tape, from the run of the program to its end."""

from __future__ import annotations

from collections.abc import Sequence

from symad.display.document import Picture
from symad.drawing.shapes import Colour
from symad.drawing.svg import Canvas
from symad.teaching.explanation.tapes import Design, Tape, Tapes

LABEL, PHASE, TOP, STEP, BAR = 128.0, 136.0, 88.0, 42.0, 28.0  # pixels of names, of phases, of rows
NARROWEST, GAP, PAGE = 560.0, 20.0, 1180.0
LETTERS = 22  # of a phase in characters


def tapes_picture(tapes: Tapes, kept: Sequence[tuple[int, int]], operations: int) -> Picture:
    """Return the four designs for one program side by side, with the same in characters and in TikZ.

    `kept` has for each reverse level, innermost first, its depth and how many values wait for its sweep.
    """
    designs = tapes.designs
    width = max(NARROWEST, LABEL + 16 + PHASE * len(tapes.phases))
    height = TOP + STEP * max(1, len(tapes.reverse)) + 26
    columns = 2 if 2 * width + GAP <= PAGE else 1
    rows = -(-len(designs) // columns)
    canvas = Canvas(columns * (width + GAP) - GAP, rows * (height + GAP) - GAP)
    for k, design in enumerate(designs):
        panel = Canvas(width, height)
        _draw(panel, tapes, design, kept, operations)
        canvas.place(panel, (k % columns) * (width + GAP), (k // columns) * (height + GAP))
    words = "; ".join(f"{design.name}: {_in_words(design)}" for design in designs)
    return canvas.picture(f"Four designs of tapes for this program. {words}.", _characters(tapes, kept, operations))


def _draw(canvas: Canvas, tapes: Tapes, design: Design, kept: Sequence[tuple[int, int]], operations: int) -> None:
    """Draw one design: its rule, the phases, and the lives of its tapes."""
    outline: Colour = "tangent" if design.name == "staged" else "muted"
    canvas.box(0.6, 0.6, canvas.width - 1.2, canvas.height - 1.2, stroke=outline, radius=6)
    canvas.text(12, 24, design.name, size=17, anchor="start", bold=True)
    canvas.text(12, 46, design.rule, size=14, anchor="start", colour="muted")
    width = (canvas.width - LABEL - 16) / len(tapes.phases)
    for k, phase in enumerate(tapes.phases):
        x = LABEL + k * width
        canvas.text(x + width / 2, 72, phase, size=14)
        canvas.segment((x, 60), (x, canvas.height - 10), stroke="muted", line=0.6, dashed=True)
    for row, tape in enumerate(design.tapes):
        _bar(canvas, tape, LABEL, TOP + row * STEP, width)
        if row and tape.refers:
            x = LABEL + 14
            canvas.segment((x, TOP + row * STEP), (x, TOP + (row - 1) * STEP + BAR), stroke="parameter", arrow=True)
    if not design.tapes:
        _staged(canvas, kept, operations, width)


def _bar(canvas: Canvas, tape: Tape, left: float, y: float, width: float) -> None:
    """Draw the life of a tape: a bar up to the sweep after which it is freed, in steps where it grows."""
    canvas.text(12, y + 19, f"tape, {tape.owner}", size=14, anchor="start", colour="cotangent")
    end = left + (tape.freed + 1) * width - 4
    if tape.grows:
        for k, entries in enumerate(tape.grows[: tape.freed + 1]):
            high = BAR * entries / tape.entries if tape.entries else BAR
            x, part = left + k * width, width if k < tape.freed else width - 4
            canvas.box(x, y + BAR - high, part, high, fill="cotangent", opacity=0.22, radius=0)
            canvas.text(x + 8, y + 19, _entries(entries), size=14, anchor="start")
    else:
        canvas.box(left, y, end - left, BAR, fill="cotangent", opacity=0.22, stroke="cotangent", radius=3)
        refers = f" + {tape.refers} referred to" if tape.refers else ""
        canvas.text(left + 28, y + 19, f"{_entries(tape.entries)}{refers}", size=14, anchor="start")
    canvas.text(end - 6, y + 19, "freed", size=13, anchor="end", colour="muted")


def _staged(canvas: Canvas, kept: Sequence[tuple[int, int]], operations: int, width: float) -> None:
    """Draw what is there instead of tapes: values that wait in a program that was written before."""
    canvas.text(12, TOP + 19, "values kept", size=14, anchor="start", colour="residual")
    for row, (depth, count) in enumerate(kept):
        y, end = TOP + row * STEP, LABEL + (row + 2) * width - 4
        canvas.box(LABEL, y, end - LABEL, BAR, fill="residual", opacity=0.22, stroke="residual", radius=3)
        canvas.text(LABEL + 8, y + 19, f"{count} for level {depth}", size=14, anchor="start")
    y = TOP + max(1, len(kept)) * STEP + 14
    canvas.text(LABEL, y, f"{operations} operations in one program, nothing recorded", size=14, anchor="start")


def _characters(tapes: Tapes, kept: Sequence[tuple[int, int]], operations: int) -> str:
    """Return the same picture in characters."""
    lines = [" " * 22 + "".join(f"|{phase:<{LETTERS}}" for phase in tapes.phases) + "|"]
    for design in tapes.designs:
        lines += ["", f"{design.name}: {design.rule}"]
        for tape in design.tapes:
            words = [_entries(tape.entries) + (f" + {tape.refers} ref." if tape.refers else "")]
            words = [_entries(entries) for entries in tape.grows[: tape.freed + 1]] or words
            lines.append(_life(f"tape, {tape.owner}", words, tape.freed, "freed"))
        if not design.tapes:
            lines += [
                _life(f"kept for level {depth}", [f"{count} values"], row + 1, "")
                for row, (depth, count) in enumerate(kept)
            ]
            lines.append(f"  {operations} operations in one program, nothing recorded")
    return "\n".join(line.rstrip() for line in lines)


def _life(owner: str, words: Sequence[str], last: int, end: str) -> str:
    parts = [words[k] if k < len(words) else "" for k in range(last + 1)]
    bars = [f"|{part + ' ' if part else '':=<{LETTERS}}" for part in parts]
    return f"  {owner:<20}" + "".join(bars) + f"| {end}"


def _in_words(design: Design) -> str:
    if not design.tapes:
        return "no tape" if design.name == "staged" else "no reverse level, no tape"
    return ", ".join(f"tape of {tape.owner} with {_entries(tape.entries)}" for tape in design.tapes)


def _entries(number: int) -> str:
    return f"{number} entr{'y' if number == 1 else 'ies'}"
