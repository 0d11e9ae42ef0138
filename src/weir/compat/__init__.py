"""The tools that weir replaces: their reports, read."""
