"""What instructions do, a file a family; opcodes.py joins their tables."""
