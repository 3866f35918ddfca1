"""The meaning of every head: its machine operations, its value in floats, its value at high precision."""
