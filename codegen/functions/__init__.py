"""What every head means: its machine operations, its value in floats, and its value at high precision."""
