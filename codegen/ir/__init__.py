"""The intermediate representation: programs of rows, and rolled programs of regions."""
