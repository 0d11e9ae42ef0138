"""From a run file to conclusions that a sceptic accepts: each with its interval, its evidence and what would change it.

Reads the store and calls `stats`; runs nothing and draws nothing.
"""

from weir.findings.load import LoadFindings, of_load
from weir.findings.metrics import BY_KEY, METRICS, Metric
from weir.findings.run import of_run
from weir.findings.types import (
    FINDINGS_SCHEMA,
    Answer,
    Audit,
    Caution,
    Comparison,
    Held,
    IdenticalCopies,
    LeftOut,
    Measure,
    Point,
    Published,
    RunFindings,
    StackFindings,
    TrialCounts,
    WhatRan,
)

__all__ = [
    "BY_KEY",
    "FINDINGS_SCHEMA",
    "METRICS",
    "Answer",
    "Audit",
    "Caution",
    "Comparison",
    "Held",
    "IdenticalCopies",
    "LeftOut",
    "LoadFindings",
    "Measure",
    "Metric",
    "Point",
    "Published",
    "RunFindings",
    "StackFindings",
    "TrialCounts",
    "WhatRan",
    "of_load",
    "of_run",
]
