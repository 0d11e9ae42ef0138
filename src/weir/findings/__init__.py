"""Computes conclusions from a run file: sentences with their intervals and with the trials behind them.

This package reads the store and calls `stats`. This package measures nothing and draws nothing.
"""

from weir.findings.load_findings import LoadFindings
from weir.findings.run_findings import of_run
from weir.findings.types import RunFindings

__all__ = ["LoadFindings", "RunFindings", "of_run"]
