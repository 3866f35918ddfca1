"""The intermediate representation: programs of rows, rolled programs of regions; what both mean and what they cost."""
