"""What authors demand of a kernel and its loops, as the frontend writes it into IR."""
