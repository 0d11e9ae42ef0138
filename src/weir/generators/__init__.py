"""What produces the load: weir's engine (and, behind the same interface, external tools)."""
