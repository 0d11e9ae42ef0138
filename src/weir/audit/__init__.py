"""Checks a load tool's report, or a table of published figures, for impossible numbers."""
