"""One document, five forms: text for a terminal, LaTeX for a paper, HTML with MathML, a notebook, SVG in all."""

from codegen.later import later

__getattr__, __dir__ = later(__name__)
