"""How long a launch takes: what it does, read from its IR, and what a device does in which time."""
