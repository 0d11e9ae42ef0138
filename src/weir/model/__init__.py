"""Plain types that all rooms share. This room imports no other room and does no I/O."""
