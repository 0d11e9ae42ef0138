"""Generates docs/reference/json.md from the types of the JSON of one load."""

from pydantic import TypeAdapter

from scripts.reference.json_types import described
from scripts.reference.tables import Sections
from weir.model import load_records, resources
from weir.model.load_records import LoadSummary
from weir.model.resources import StackResources

_HEAD = """\
# The JSON of one load

<!-- Made by `make reference` from the types in src/weir/model/load_records.py and resources.py. Change the docstrings there. -->

`weir load … --json FILE` writes this JSON; `-` is standard output. `weir report LOAD --json` prints the JSON of a kept load, with the
settings of the load under `run`. These keys stay; readers must ignore keys that they do not know. Times are in microseconds, and null
without samples. Exact definitions of clocks and counts: [engine.md](engine.md#weir-engine-load-the-records).

```sh
weir load http://127.0.0.1:8000/ -R 500 -d 10s --json - | jq '.response_time_us.p99, .verdict'
```
"""
_OBJECTIVES = """\
The keys of `objectives` and `aborted`: [objectives.md](objectives.md).
"""
_SERVER = """\
## `server`

The resources that the server's processes used during the load. This key exists only with `--watch PID`. `pids` is the list of these
process ids; the other keys are below.
"""


def page() -> str:
    load = described(TypeAdapter(LoadSummary).json_schema(), load_records)
    server = described(TypeAdapter(StackResources).json_schema(), resources)
    return "\n".join(
        [
            _HEAD,
            Sections(load["$defs"], "json").of(load, "The load"),
            _OBJECTIVES,
            _SERVER,
            Sections(server["$defs"], "json", level=3).of(server, "Its keys"),
        ]
    )
