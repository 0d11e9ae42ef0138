"""How far a trial can be trusted. Pure: figures in, verdict out. A reason is a fact, a threshold and a probable cause."""

from weir.model.records import LoadSummary, Validity, Verdict

CEILING_SHARE = 0.5
"""A generator must reach at least twice the throughput of what it measures."""
STEAL_SHARE = 0.02

_RANK: dict[Validity, int] = {"valid": 0, "suspect": 1, "invalid": 2}


def judge(
    summary: LoadSummary,
    *,
    stack_ended: str | None,
    ceiling_rps: float | None,
    steal_fraction: float | None,
    load_shares_stack_cpu: bool,
) -> Verdict:
    """The verdict on a trial.

    Args:
        summary: what the generator says, its own verdict included.
        stack_ended: how the stack ended before the load did; None where it did not.
        ceiling_rps: what the generator reached on the null server; None where that was not measured.
        steal_fraction: share of the stack's CPU time that the hypervisor took.
        load_shares_stack_cpu: True where generator and stack share a CPU.
    """
    found: list[tuple[Validity, str]] = []
    if stack_ended is not None:
        found.append(("invalid", f"the stack ended {stack_ended} during the load"))
    if summary.requests.failed:
        kinds = ", ".join(f"{kind} {count}" for kind, count in summary.errors.model_dump().items() if count)
        share = f"{summary.requests.failed} of {summary.requests.intended} requests failed ({kinds})"
        found.append(("invalid", f"{share}; only error-free trials count"))
    if ceiling_rps is not None and summary.throughput_rps > CEILING_SHARE * ceiling_rps:
        ceiling = f"the generator's own ceiling on a null server ({ceiling_rps:,.0f} req/s)"
        fact = f"{summary.throughput_rps:,.0f} req/s is more than half of {ceiling}"
        found.append(("suspect", f"{fact}: the generator may be the limit"))
    if steal_fraction is not None and steal_fraction > STEAL_SHARE:
        found.append(("suspect", f"{steal_fraction:.1%} of the stack's CPU time was stolen by the hypervisor, more than {STEAL_SHARE:.0%}"))
    if load_shares_stack_cpu:
        found.append(("suspect", "the generator and the stack share a CPU"))
    if summary.verdict.validity != "valid":
        found.extend((summary.verdict.validity, reason) for reason in summary.verdict.reasons)
    worst = max((validity for validity, _ in found), key=_RANK.__getitem__, default="valid")
    return Verdict(validity=worst, reasons=[reason for _, reason in found])
