"""What is known of a program, without changing it: addresses, order, conflicts, lifetimes."""
