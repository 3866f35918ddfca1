"""Read formulas that people type: tokens, names, a parser. No text is evaluated."""
