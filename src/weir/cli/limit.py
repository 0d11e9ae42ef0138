"""What a load is held against where the generator may have been the limit: what it reaches on a server that does nothing."""

import os

from weir.cli.output import at_terminal, say
from weir.generators.ceiling import measure_ceiling
from weir.model.errors import WeirError
from weir.model.load import LoadPlan
from weir.model.records import LoadSummary

_BUSY_SHARE = 0.85
"""From here on the engine's verdict has it among its reasons."""
_CEILING_S = 1.0


def may_be_the_limit(summary: LoadSummary) -> bool:
    """Whether the generator was so busy that the throughput may be its own."""
    return summary.requests.completed > 0 and (summary.generator.busy_fraction or 0.0) >= _BUSY_SHARE


def with_ceiling(summary: LoadSummary, plan: LoadPlan) -> LoadSummary:
    """The summary with the ceiling of its generator, measured now; without where it cannot be measured, or Ctrl-C ends that."""
    if at_terminal():
        say("weir: the generator was busy: measuring for 1 s what it reaches on a server that does nothing")
    others = sorted(os.sched_getaffinity(0) - set(plan.cpus)) if plan.cpus else []
    try:
        ceiling = measure_ceiling(plan, duration_s=_CEILING_S, server_cpus=others)
    except KeyboardInterrupt:
        return summary
    except WeirError as error:
        say(f"weir: the generator's ceiling could not be measured: {error.message}")
        return summary
    return summary.model_copy(update={"generator": summary.generator.model_copy(update={"ceiling_rps": round(ceiling, 1)})})
