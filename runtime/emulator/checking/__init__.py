"""Check mode: clocks, what every cell remembers, and the rules of each kind of memory."""
