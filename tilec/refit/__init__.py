"""Times products on the GPU at hand and fits the rates of `tilec.costs.rates` to them."""
