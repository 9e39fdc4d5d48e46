"""Calls of libraries, a module each: `REPOSITORY`, `prepare(folder)` and `CALLS` by name; where
a library says that an order is arbitrary, `FREE_ORDER`; where results are angles, `TURNS`, the
length of a whole turn of each array: such are equal on the circle."""
