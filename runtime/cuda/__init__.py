"""The NVIDIA GPU through cuda-python. Imports without a driver."""
