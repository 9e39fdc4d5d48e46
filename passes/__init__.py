"""Passes: each one file, one public function, one lit folder. See README.md."""
