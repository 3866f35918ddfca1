"""Match bars of absolute values where there is only one way to do so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from symad.classroom.formulas.formula_names import FUNCTIONS
from symad.classroom.formulas.tokens import Token, asked_back, refuse

_MOST = 40  # bars in one formula
_STARTS = frozenset(["name", "number", "fraction", "partial", "root", "derivative"])
_ENDS = frozenset(["name", "number", "fraction", "power", "prime", "bang"])
Way = tuple[bool, ...]  # for each bar, whether it opens


def with_bars(text: str, words: list[Token]) -> list[Token]:
    """Return the words with "|(" and "|)" for bars; refused if bars fit in no way, or in two.

    >>> from symad.classroom.formulas.tokens import scanned
    >>> text = "x/|x| - ||x| - 1|"
    >>> " ".join(word.text for word in with_bars(text, scanned(text)))
    'x / |( x |) - |( |( x |) - 1 |) '
    """
    marked = list(words)
    for places in _levels(text, words):
        bars = [place for place in places if words[place].kind == "bar"]
        if len(bars) > _MOST:
            refuse(text, words[bars[_MOST]].column, "so many bars", "write abs(x) for |x|")
        ways = _ways(words, places) if bars else []
        if not ways:
            if bars:
                refuse(text, words[bars[0]].column, "'|' without the other one", "write abs(x) for |x|")
            continue
        if len(ways) > 1:
            _two(text, words, bars, ways)
        for place, opens in zip(bars, ways[0], strict=True):
            marked[place] = replace(words[place], text="|(" if opens else "|)")
    return marked


def _levels(text: str, words: Sequence[Token]) -> list[list[int]]:
    """Return the words of each parenthesis, inner ones as their two signs; nothing for those without a bar."""
    if all(word.kind != "bar" for word in words):
        return []
    done: list[list[int]] = []
    open_levels: list[list[int]] = [[]]
    for place, word in enumerate(words):
        closes = word.kind == "operator" and word.text in (")", "]")
        if closes and len(open_levels) > 1:
            done.append(open_levels.pop())
        if word.kind == "operator" and word.text == ",":
            done.append(open_levels.pop())
            open_levels.append([])
            continue
        open_levels[-1].append(place)
        if word.kind == "operator" and word.text in ("(", "["):
            open_levels.append([])
    return [*done, *reversed(open_levels)]


def _ways(words: Sequence[Token], places: Sequence[int]) -> list[Way]:
    """Return at most two ways in which the bars of a level open and close."""
    states: dict[tuple[int, bool], list[Way]] = {(0, False): [()]}  # by open bars, and whether an operand ended
    for number, place in enumerate(places):
        word = words[place]
        if word.kind != "bar":
            ends = (word.kind in _ENDS and word.text not in FUNCTIONS) or word.text in (")", "]")
            states = _merged(((depth, ends), ways) for (depth, _), ways in states.items())
            continue
        after = words[places[number + 1]] if number + 1 < len(places) else None
        starts = after is not None and (after.kind in {*_STARTS, "bar"} or after.text in ("(", "["))
        if after is not None and after.text == "-":  # |-x|, while | - x goes on behind a bar
            starts = not (after.spaced and words[places[number + 2]].spaced) if number + 2 < len(places) else False
        moved: list[tuple[tuple[int, bool], list[Way]]] = []
        for (depth, ended), ways in states.items():
            if starts and word.text != "|)":
                moved.append(((depth + 1, False), [(*way, True) for way in ways]))
            if ended and depth and word.text != "|(":
                moved.append(((depth - 1, True), [(*way, False) for way in ways]))
        states = _merged(moved)
    return [way for (depth, _), ways in states.items() if depth == 0 for way in ways][:2]


def _merged(entries: Iterable[tuple[tuple[int, bool], list[Way]]]) -> dict[tuple[int, bool], list[Way]]:
    merged: dict[tuple[int, bool], list[Way]] = {}
    for state, ways in entries:
        merged[state] = [*merged.get(state, []), *ways][:2]
    return merged


def _two(text: str, words: Sequence[Token], bars: Sequence[int], ways: Sequence[Way]) -> None:
    readings = []
    for way in sorted(ways):  # the one that closes first is recommended
        written, position = "", words[bars[0]].column
        for place, opens in zip(bars, way, strict=True):
            written += text[position : words[place].column] + (" abs(" if opens else ")")
            position = words[place].end
        readings.append(written)
    asked_back(text, words[bars[0]].column, "these bars", *readings)
