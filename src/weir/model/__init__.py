"""Plain types that all packages of weir share. This package does not import other packages of weir, and does no I/O."""
