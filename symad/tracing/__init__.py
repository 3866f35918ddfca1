"""Tracing: scalars, arrays and containers that record the operations of plain NumPy code."""
