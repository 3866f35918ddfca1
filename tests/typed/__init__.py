"""A user's file, whose inferred types mypy and pyright compare with what it says."""
