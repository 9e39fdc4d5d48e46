"""What programs of a grid and CTAs of a cluster do alike, and their order."""
