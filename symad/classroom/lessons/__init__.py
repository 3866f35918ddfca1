"""The lessons of the repository, read, run cell by cell, and shown."""
