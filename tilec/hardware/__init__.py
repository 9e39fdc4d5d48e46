"""Facts of the hardware: targets, instructions, layouts of registers and memories."""
