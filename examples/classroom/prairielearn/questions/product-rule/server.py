"""A random product for each variant."""

import random
from typing import Any

FACTORS = [("sin({k} x)", r"\sin({k} x)"), ("e^({k} x)", r"e^{{{k} x}}"), ("ln({k} x)", r"\ln({k} x)")]


def generate(data: dict[str, Any]) -> None:
    """Choose an exponent and a factor by the seed of the variant."""
    chance = random.Random(data["variant_seed"])
    n, k = chance.randint(2, 6), chance.randint(2, 9)
    text, latex = chance.choice(FACTORS)
    data["params"]["f"] = f"x^{n} {text.format(k=k)}"
    data["params"]["latex"] = f"x^{n} {latex.format(k=k)}"
