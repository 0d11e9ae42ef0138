"""Plain types that all rooms share. Imports nothing of ours and does no I/O."""
