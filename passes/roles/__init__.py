"""Rings, who fills them, and how roles share threads and registers."""
