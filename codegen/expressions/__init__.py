"""SymPy expressions become rows."""
