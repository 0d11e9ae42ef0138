"""Turns a run file into conclusions, each with its interval, its evidence and what would change it.

Reads the store and calls `stats`; runs nothing and draws nothing.
"""

from weir.findings.break_even import METRICS as BREAK_EVEN_METRICS
from weir.findings.break_even import WantedPoint
from weir.findings.capacity_estimate import (
    Answers,
    Capacity,
    KneeFinding,
    combine_capacity_searches,
    combine_knee_searches,
)
from weir.findings.load_findings import LoadFindings, trials_to_show
from weir.findings.metrics import BY_KEY, METRICS, Metric
from weir.findings.run_findings import break_evens_in, of_run, wanted_points_in
from weir.findings.types import (
    FINDINGS_SCHEMA,
    Answer,
    Audit,
    BreakEven,
    Caution,
    Comparison,
    GeneratorFindings,
    Held,
    IdenticalCopies,
    LeftOut,
    Measure,
    Point,
    Published,
    RunFindings,
    SameServer,
    Scaling,
    StackFindings,
    TrialCounts,
    Variation,
    WhatRan,
)

__all__ = [
    "BREAK_EVEN_METRICS",
    "BY_KEY",
    "FINDINGS_SCHEMA",
    "METRICS",
    "Answer",
    "Answers",
    "Audit",
    "BreakEven",
    "Capacity",
    "Caution",
    "Comparison",
    "GeneratorFindings",
    "Held",
    "IdenticalCopies",
    "KneeFinding",
    "LeftOut",
    "LoadFindings",
    "Measure",
    "Metric",
    "Point",
    "Published",
    "RunFindings",
    "SameServer",
    "Scaling",
    "StackFindings",
    "TrialCounts",
    "Variation",
    "WantedPoint",
    "WhatRan",
    "break_evens_in",
    "combine_capacity_searches",
    "combine_knee_searches",
    "of_load",
    "of_run",
    "trials_to_show",
    "wanted_points_in",
]
