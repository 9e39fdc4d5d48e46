"""Blocks as Python code, the state of a batch of CTAs, and who runs when."""
