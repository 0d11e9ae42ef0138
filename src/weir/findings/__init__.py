"""From a run file to conclusions that a sceptic accepts: each with its interval, its evidence and what would change it.

Reads the store and calls `stats`; runs nothing and draws nothing.
"""

from weir.findings.breakeven import METRICS as BREAK_EVEN_METRICS
from weir.findings.breakeven import WantedPoint
from weir.findings.capacity import Answers, Capacity, KneeFinding, capacity_of, knee_of
from weir.findings.generator_types import GeneratorFindings, SameServer
from weir.findings.load import LoadFindings, of_load
from weir.findings.measured import Comparison, Measure
from weir.findings.metrics import BY_KEY, METRICS, Metric
from weir.findings.run import break_evens_in, of_run, wanted_points_in
from weir.findings.types import (
    FINDINGS_SCHEMA,
    Answer,
    Audit,
    BreakEven,
    Caution,
    Held,
    IdenticalCopies,
    LeftOut,
    Point,
    Published,
    RunFindings,
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
    "capacity_of",
    "knee_of",
    "of_load",
    "of_run",
    "wanted_points_in",
]
