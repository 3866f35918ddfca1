"""From a program of heads to machine operations, fewer and fewer of them."""
