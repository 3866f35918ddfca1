"""Whole classes: a question in a file, many answers, marks, pages, and which mistake how often."""
