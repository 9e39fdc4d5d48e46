"""Blocks as Python functions, the state of a batch of CTAs, and who runs when."""
