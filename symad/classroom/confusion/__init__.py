"""Wrong designs of nested derivatives, watched line by line beside the right one; never imported by symad."""
