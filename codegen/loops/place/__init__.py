"""Place: rows and loops become a rolled program."""
