"""Programs as plain data in files and pickles, and the cache of object code."""
