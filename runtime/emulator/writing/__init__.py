"""What instructions write their Python code with, and what that code is bound to."""
