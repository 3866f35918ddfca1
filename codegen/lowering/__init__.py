"""Lower a program of heads to machine operations, and reduce their number."""
