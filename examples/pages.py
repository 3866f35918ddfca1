"""Six pages for a lecture: expansions, stages, the confusion exhibit, a graph, a comparison; each opens offline.

    python examples/pages.py [FOLDER]

A page is one file without scripts: formulas are MathML, pictures are SVG. Without a folder the pages are written to a
temporary one and only looked through.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import sympy as sp

import symad as sa
from symad.classroom.confusion.exhibit import exhibit

x, v, w = sp.symbols("x v w")


def inverse_norm(x):
    """Return 1 / |x|."""
    return 1 / np.linalg.norm(x)


def graph_of_sixty_nodes(x):
    """Return a gradient whose graph has about sixty nodes."""
    return sa.grad(lambda x: np.exp(-np.sum((x[1:] - x[:-1] ** 2) ** 2)) * np.prod(np.sin(x)))(x)


def pages():
    """Yield the name of each page and what it shows."""
    yield "cube", sa.expand(x**3, x, [v, w])
    yield "exp_x_sin_x", sa.expand(sp.exp(x * sp.sin(x)), x, v, order=3)
    yield "gradient_of_gradient", sa.explain(sa.jacrev(sa.grad(inverse_norm)), np.array([3.0, 4.0]))
    yield "confusion", exhibit("siskind-pearlmutter")
    yield "graph", sa.draw(graph_of_sixty_nodes, np.ones(4))
    yield "comparison", sa.compare(sp.exp(x * sp.sin(x)), {x: 0.7}, 2, plots=True)


def write(folder):
    """Write all pages to a folder, and look for what no page may have."""
    for name, shown in pages():
        page = shown.save(Path(folder) / f"{name}.html")
        text = page.read_text(encoding="utf-8")
        assert not any(part in text for part in ("<script", 'src="')), "a page that fetches or runs something"
        assert any(part in text for part in ("<math", "<svg"))
        print(f"{page.name}: {len(text) // 1000} kB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        write(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            write(folder)
