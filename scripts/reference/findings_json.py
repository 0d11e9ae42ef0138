"""docs/reference/findings.md, from the types of the JSON of a run's findings."""

from pydantic import TypeAdapter

from scripts.reference.json_types import described
from scripts.reference.tables import Sections
from weir import stats
from weir.findings import types
from weir.findings.types import FINDINGS_SCHEMA, RunFindings
from weir.model import run_types as run

_HEAD = f"""\
# The JSON of a run's findings

<!-- Made by `make reference` from the types in src/weir/findings and src/weir/stats. Change the docstrings there. -->

`weir report RUN --json` prints it, with the key `schema`, {FINDINGS_SCHEMA}, before those below;
[docs/results](../results/README.md) has the same for every published study. A number with `low` and `high` is an estimate with its 95 %
interval; both are null with too few blocks. These keys stay; readers must ignore keys that they do not know.
How to read the findings: [guides/report.md](../guides/report.md). The JSON of a single load: [json.md](json.md).

```sh
weir report runs/mine --json | jq '.answer.sentence, (.points[].comparisons[] | select(.metric == "throughput_rps") | .label, .ratio)'
```
"""
_EVERYWHERE = {
    "against_label": "`label` of the baseline.",
    "against_name": "`name` of the baseline.",
    "block": "From 1.",
    "blocks": "Number of blocks.",
    "cell": "Its number in the run file.",
    "coordinates": "The other varied keys, with their values here.",
    "count": "Number of values.",
    "high": "Upper end of the interval.",
    "indicative": "Whether it has fewer blocks than a claim needs.",
    "label": "The stack: `ID`, `ID[VARIANT]`, with ` (A/A)` for the second copy.",
    "left_out": "Number of unused trials.",
    "load": "In words.",
    "low": "Lower end of the interval.",
    "metric": "Its name in a study file: `throughput_rps`, `response_time_us.p99`.",
    "name": "Its short name in sentences.",
    "note": "A remark; empty if there is none.",
    "objective": "From the study file.",
    "point": "As its `label`.",
    "question": "From the study file.",
    "sentence": "The same in words.",
    "service": "Its name in a study file.",
    "source": "The published study; empty if there is none.",
    "stack": "Its id.",
    "tier": "`app`, or a service.",
    "title": "From the study file.",
    "trial": "Its number in the run file.",
    "trials": "Number of trials.",
    "unit": "Of the numbers beside it.",
    "used": "Number of used trials.",
    "validity": "The worst validity of its trials.",
    "value": "The figure.",
    "where": "Its point in words; empty if there is only one.",
    "workload": "Its name in a study file.",
    "would_change": "What would change it, in words.",
}
"""Keys with the same meaning everywhere."""


def page() -> str:
    """The page."""
    schema = described(TypeAdapter(RunFindings).json_schema(), types, run, stats, everywhere=_EVERYWHERE)
    return "\n".join([_HEAD, Sections(schema["$defs"], "json").of(schema, "The run")])
