"""Exercises and worksheets: random questions, derivations, hints, and typical wrong answers with their diagnosis."""
