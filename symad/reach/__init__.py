"""What a function depends on: one walker, by allow-list; the answer is complete, or it is "unknown"."""
