"""Holds what others measured against physics: a tool's report, or a table of published figures."""
