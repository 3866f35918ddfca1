"""Markdown: tables, numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table: the first column to the left, the others to the right.

    >>> print(table(["name", "ns"], [["a", "1"]]))
    | name | ns |
    |:--|--:|
    | a | 1 |
    """
    lines = [header, *rows]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    text.insert(1, "|:--|" + "--:|" * (len(header) - 1))
    return "\n".join(text)


def number(value: float) -> str:
    """Return three digits, without an exponent for the usual sizes.

    >>> [number(value) for value in (0.01234, 1.234, 1234.5, 1.2e6)]
    ['0.0123', '1.23', '1234', '1.2e+06']
    """
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def percent(share: float | None) -> str:
    """Return a share in per cent, without the sign.

    >>> percent(0.123), percent(None)
    ('12', '-')
    """
    return "-" if share is None else f"{100 * share:.0f}"
