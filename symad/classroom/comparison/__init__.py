"""Compute one derivative by every route: routes, exact values, verdicts, the table."""
