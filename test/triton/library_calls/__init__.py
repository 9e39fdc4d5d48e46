"""Calls of libraries, a module each: `REPOSITORY`, `prepare(folder)` and `CALLS` by name; where
a library says that an order is arbitrary, `FREE_ORDER`."""
