"""The tests: folders as in the source, what they share in support, what they say of the repository in repository."""
