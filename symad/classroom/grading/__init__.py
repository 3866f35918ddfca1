"""Grade whole classes: a question file, many answers, marks, pages, counts of mistakes."""
