"""Finding and writing IR: walks, positions in the source, scalars, loops, slices."""
