"""The stages of nested derivatives: roles, lines, residuals, tapes, the page."""
