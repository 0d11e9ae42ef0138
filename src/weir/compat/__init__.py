"""Reads the reports of the tools that weir replaces."""
