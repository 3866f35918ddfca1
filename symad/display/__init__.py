"""One document, four forms: text for a terminal, LaTeX for a paper, HTML with MathML for a page, SVG in both."""

from codegen.later import later

__getattr__, __dir__, __all__ = later(__name__)
