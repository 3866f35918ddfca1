"""One document, four forms: text for a terminal, LaTeX for a paper, HTML with MathML for a page, SVG in both."""
