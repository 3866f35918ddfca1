"""The stages of nested derivatives: roles, lines, what is kept, tapes, the page."""
