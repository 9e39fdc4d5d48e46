"""How the operands of a dot reach the instruction that multiplies them."""
