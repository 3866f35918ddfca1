"""Loops written down: sums, maps and chains of a body that is traced once where a function is compiled."""
