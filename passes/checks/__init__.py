"""What a program may contain at each level; rules of ops, kernels and targets."""
