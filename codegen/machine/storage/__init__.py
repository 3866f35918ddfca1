"""Programs as plain data, in files and pickles; the cache of object code."""
