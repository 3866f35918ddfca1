"""Find loops in straight lines."""
