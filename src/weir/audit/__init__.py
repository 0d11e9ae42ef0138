"""Checks a load tool's report, or a table of published figures, against the laws of physics."""
