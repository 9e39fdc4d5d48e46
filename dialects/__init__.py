"""The two dialects, `tile` and `gpu_tile`, and the layer that defines their ops. See README.md."""
