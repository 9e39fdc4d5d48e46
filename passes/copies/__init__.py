"""Loads that only fill a buffer, tensor copies (TMA) and their tensor maps."""
