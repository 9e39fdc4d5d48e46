"""Times products on the GPU at hand and fits the rates of `tilec.tuning.rates` to them."""
