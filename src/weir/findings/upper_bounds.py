"""Compares a stack's throughput with computed upper bounds, such as threads ÷ waiting time per request."""

from collections.abc import Sequence

from weir.findings.formatting import significant
from weir.findings.metrics import THROUGHPUT
from weir.findings.point_types import StackFindings


def describe_upper_bounds(stacks: Sequence[StackFindings]) -> str:
    """Describes each stack's throughput as a share of the lowest upper bound. Returns '' without bounds."""
    parts = []
    for stack in stacks:
        reached = stack.measure(THROUGHPUT).value
        if stack.arm != "main" or not stack.upper_bounds or reached is None:
            continue
        lowest = stack.upper_bounds[0]
        whose = {"stack": "a limit of the stack", "load": "a limit of the load", "upstream": "a limit of the upstream"}[
            lowest.of
        ]
        share = reached / lowest.throughput_rps
        allowed = f"{significant(lowest.throughput_rps)} req/s that {lowest.because} allow"
        parts.append(f"{stack.name} reached {share * 100:.1f} % of the {allowed}, {whose}")
    return f"Predicted upper bounds: {'; '.join(parts)}." if parts else ""
