"""Turns a run file into conclusions, each with its interval, its evidence and what would change it.

Reads the store and calls `stats`; runs nothing and draws nothing.
"""

from weir.findings.load_findings import LoadFindings
from weir.findings.run_findings import of_run
from weir.findings.types import RunFindings

__all__ = ["LoadFindings", "RunFindings", "of_run"]
