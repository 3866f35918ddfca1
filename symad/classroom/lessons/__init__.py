"""Read the lessons of the repository, run them cell by cell, and show them."""
