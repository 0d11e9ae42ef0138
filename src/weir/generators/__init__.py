"""Load generators: weir's engine and external tools, behind one interface."""
