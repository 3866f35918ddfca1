"""Values: what traced numbers and arrays are."""
