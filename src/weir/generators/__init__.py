"""Load generators: weir's engine, and external tools behind the same interface."""
