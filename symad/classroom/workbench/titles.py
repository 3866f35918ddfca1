"""The names of panes and transforms, for the server, which computes nothing itself."""

from __future__ import annotations

PANES = ("formula", "expansion", "stages", "graph", "program", "code", "errors", "routes", "confusion")
TITLES = {
    "value": "f itself", "grad": "gradient", "derivative": "derivative of order k",
    "grad-grad": "gradient of a gradient", "jvp-grad": "jvp of the gradient", "hessian": "Hessian",
    "laplacian": "Laplacian", "jacfwd": "Jacobian, forward", "jacrev": "Jacobian, reverse",
}  # fmt: skip
HIGHEST_ORDER = 8
LONGEST_TEXT = 4000  # letters that are read
EXPORTS = (".html", ".ipynb", ".tex", ".txt", ".svg", ".png", ".pdf", ".md", ".csv")
