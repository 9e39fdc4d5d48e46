"""What authors and every layer speak of: a table of dtypes, a table of demands."""
