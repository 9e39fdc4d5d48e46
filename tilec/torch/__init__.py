"""What PyTorch programs need beside a call: gradients."""
