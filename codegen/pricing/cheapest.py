"""Choice: which way of compiling costs least, to build and to call a million times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from codegen.pricing.price import Price

Way = Literal["straight", "sweep", "rolled"]
FASTER = 1.5  # straight lines have to be so many times faster to call than loops
SWEPT = 1.1  # a sweep may cost so many times as much as loops: predicted, it comes out a little too dear


def cheapest(prices: Mapping[Way, Price]) -> Way:
    """Return the way that costs least; loops, unless straight lines are much faster to call.

    >>> cheapest({"straight": Price(480.0, 0.03), "rolled": Price(590.0, 0.048)})
    'rolled'
    >>> cheapest({"straight": Price(480.0, 0.03), "rolled": Price(990.0, 0.048)})
    'straight'
    """
    left = dict(prices)
    if "straight" in left and "rolled" in left and left["rolled"].call < FASTER * left["straight"].call:
        del left["straight"]
    if "sweep" in left and "rolled" in left and left["sweep"].total() < SWEPT * left["rolled"].total():
        del left["rolled"]
    return min(left, key=lambda way: left[way].total())
