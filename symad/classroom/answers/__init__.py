"""What pupils write, line by line: which is the first wrong one, and which mistake leads there."""
