"""PTX types, and exactly rounded arithmetic that NumPy does not have."""
