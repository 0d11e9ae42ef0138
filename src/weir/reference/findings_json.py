"""docs/reference/findings.md, from the types of the JSON of a run's findings."""

from pydantic import TypeAdapter

from weir import stats
from weir.findings import generator_types, measured, types, work_types
from weir.findings.types import FINDINGS_SCHEMA, RunFindings
from weir.model import run, stop
from weir.reference.json_types import described
from weir.reference.tables import Sections

_HEAD = f"""\
# The JSON of a run's findings

<!-- Made by `make reference` from the types in src/weir/findings and src/weir/stats. Change the docstrings there. -->

`weir report RUN --json` prints it, with the key `schema`, {FINDINGS_SCHEMA}, before those below; what
[docs/results](../results/README.md) keeps of every published study is the same. A number with `low` and `high` is an estimate with its
95 % interval, both null where there are too few blocks for one. Keys that are here stay; new ones may come, so readers leave alone what
they do not know. How to read the findings: [guides/report.md](../guides/report.md). Of a single load: [json.md](json.md).

```sh
weir report runs/mine --json | jq '.answer.sentence, (.points[].comparisons[] | select(.metric == "throughput_rps") | .label, .ratio)'
```
"""
_EVERYWHERE = {
    "against_label": "`label` of what it is compared with.",
    "against_name": "`name` of what it is compared with.",
    "block": "From 1.",
    "blocks": "How many it rests on.",
    "cell": "By its number in the run file.",
    "coordinates": "What else the study varies, and its value here.",
    "count": "How many values it is made of.",
    "high": "The upper end of the interval.",
    "indicative": "Whether it has fewer blocks than a claim needs.",
    "label": "The stack: `ID`, `ID[VARIANT]`, with ` (A/A)` for the second copy.",
    "left_out": "How many are not used.",
    "load": "In words.",
    "low": "The lower end of the interval.",
    "metric": "By its name in a study file: `throughput_rps`, `response_time_us.p99`.",
    "name": "Its short name, as sentences have it.",
    "note": "What is to be kept in mind with it; empty where nothing is.",
    "objective": "As the study file has it.",
    "point": "As its `label`.",
    "question": "As the study file has it.",
    "sentence": "The same in words.",
    "service": "By its name in a study file.",
    "source": "The published study; empty where there is none.",
    "stack": "Its id.",
    "tier": "`app`, or a service.",
    "title": "As the study file has it.",
    "trial": "By its number in the run file.",
    "trials": "How many there were.",
    "unit": "Of the numbers beside it.",
    "used": "How many figures are made of.",
    "validity": "How far it can be trusted: the worst of the trials that it rests on.",
    "value": "The figure.",
    "where": "The point that it is of, in words; empty where there is only one.",
    "workload": "By its name in a study file.",
    "would_change": "What would change it, in words.",
}
"""Keys that mean the same wherever they stand."""


def page() -> str:
    """The page."""
    schema = described(
        TypeAdapter(RunFindings).json_schema(), types, measured, generator_types, work_types, run, stop, stats, everywhere=_EVERYWHERE
    )
    return "\n".join([_HEAD, Sections(schema["$defs"], "json").of(schema, "The run")])
