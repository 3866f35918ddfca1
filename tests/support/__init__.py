"""What tests share: cases, oracles, generators of random programs, and the tables of which pages are made."""
