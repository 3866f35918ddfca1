"""Check answers of pupils line by line: the first wrong line, and the mistake that leads to it."""
