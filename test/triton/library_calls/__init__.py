"""Calls of libraries, a module each: `REPOSITORY`, `prepare(folder)` and `CALLS` by name."""
