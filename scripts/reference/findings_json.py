"""Generates docs/reference/findings.md from the types of the JSON of a run's findings."""

from pydantic import TypeAdapter

from scripts.reference.json_types import described
from scripts.reference.tables import Sections
from weir import stats
from weir.findings import point_types, types
from weir.findings.types import FINDINGS_SCHEMA, RunFindings
from weir.model import run_types as run

_HEAD = f"""\
# The JSON of a run's findings

<!-- Made by `make reference` from the types in src/weir/findings and src/weir/stats. Change the docstrings there. -->

`weir report RUN --json` prints this JSON. Its first key is `schema`, {FINDINGS_SCHEMA}; the other keys are below.
[docs/results](../results/README.md) has this JSON for every published study. A number with `low` and `high` is an estimate with its 95 %
interval; both are null with too few blocks. These keys stay; readers must ignore keys that they do not know.
How to read the findings: [guides/report.md](../guides/report.md). The JSON of a single load: [json.md](json.md).

```sh
weir report runs/mine --json | jq '.answer.sentence, (.points[].comparisons[] | select(.metric == "throughput_rps") | .label, .ratio)'
```
"""
_EVERYWHERE = {
    "against_label": "`label` of the baseline.",
    "against_name": "`name` of the baseline.",
    "block": "Number of the block, from 1.",
    "blocks": "Number of blocks.",
    "cell": "Number of the cell in the run file.",
    "coordinates": "The other varied keys, with their values here.",
    "count": "Number of values.",
    "high": "Upper end of the interval.",
    "indicative": "Whether the figure has fewer blocks than a claim needs.",
    "label": "The stack: `ID`, `ID[VARIANT]`, with ` (A/A)` for the second copy.",
    "left_out": "Number of unused trials.",
    "load": "The load in words.",
    "low": "Lower end of the interval.",
    "metric": "Name of the metric in a study file: `throughput_rps`, `response_time_us.p99`.",
    "name": "Short name in sentences.",
    "note": "A remark; empty if there is none.",
    "objective": "The objective in the study file.",
    "point": "`label` of the point.",
    "question": "The question in the study file.",
    "sentence": "The finding in words.",
    "service": "Name of the service in a study file.",
    "source": "The published study; empty if there is none.",
    "stack": "Id of the stack.",
    "tier": "`app`, or a service.",
    "title": "The title in the study file.",
    "trial": "Number of the trial in the run file.",
    "trials": "Number of trials.",
    "unit": "Unit of the numbers in the object.",
    "used": "Number of used trials.",
    "validity": "Worst validity of the trials.",
    "value": "The figure.",
    "where": "The point in words; empty if there is only one point.",
    "workload": "Name of the workload in a study file.",
    "would_change": "A change of the run that could change the finding.",
}
"""Meanings of keys that mean the same in every object."""


def page() -> str:
    schema = described(TypeAdapter(RunFindings).json_schema(), point_types, types, run, stats, everywhere=_EVERYWHERE)
    return "\n".join([_HEAD, Sections(schema["$defs"], "json").of(schema, "The run")])
