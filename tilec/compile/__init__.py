"""From text of any level to PTX: the passes in order, and LLVM behind them."""
