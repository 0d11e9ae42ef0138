"""Command lines, test plans and reports of other load tools."""
