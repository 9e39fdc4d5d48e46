"""Autotuning: candidates ranked by a model, compiled in parallel, timed on the device, kept.

`tilec.autotune` is the way in; README.md explains the rules. Nothing here is imported before a
kernel is decorated with it, and MLIR only when candidates must be ranked.
"""
