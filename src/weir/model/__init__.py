"""Plain types of weir: what the other rooms hand to one another. Imports nothing of ours and does no I/O."""
