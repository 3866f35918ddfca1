"""One document in five forms: text for a terminal, LaTeX, HTML with MathML, a notebook, SVG."""

from codegen.later import later

__getattr__, __dir__ = later(__name__)
