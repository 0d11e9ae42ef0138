"""Computes conclusions from a run file: sentences with intervals, each with the ids of its trials. The package reads
the store and calls `stats`. Other packages measure and draw."""

from weir.findings.load_findings import LoadFindings
from weir.findings.run_findings import of_run
from weir.findings.types import RunFindings

__all__ = ["LoadFindings", "RunFindings", "of_run"]
