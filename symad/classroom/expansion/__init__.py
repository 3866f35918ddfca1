"""Expansions in epsilons, one level at a time: values, rules, lines, the page."""
