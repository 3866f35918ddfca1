"""Wrong designs of nested derivatives beside the right one, line by line. symad itself never imports them."""
