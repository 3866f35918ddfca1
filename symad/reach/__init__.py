"""What a function depends on: one walker, by allow-list. The answer is complete or "unknown"."""
