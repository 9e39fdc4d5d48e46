"""From a call in Python to a launch: `@tilec.kernel`, and which compiled kernel it needs."""
