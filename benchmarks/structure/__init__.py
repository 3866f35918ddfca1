"""Loops found by themselves, against straight-line code and against the peers: `python -m benchmarks.structure`."""
