"""Layouts of tiles: their inference, and how a tile lies in shared memory."""
