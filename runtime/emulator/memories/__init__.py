"""What lies where: memories, address spaces, descriptors, swizzles, boxes of tensor maps."""
