"""docs/reference/json.md, from the types of the JSON of one load."""

from pydantic import TypeAdapter

from scripts.reference.json_types import described
from scripts.reference.tables import Sections
from weir.model import records, resources
from weir.model.records import LoadSummary
from weir.model.resources import StackResources

_HEAD = """\
# The JSON of one load

<!-- Made by `make reference` from the types in src/weir/model/records.py and resources.py. Change the docstrings there. -->

`weir load … --json FILE` writes it, `-` for standard output. `weir report LOAD --json` prints it of a load that was kept, and beside it
under `run` how that was made. Keys that are here stay; new ones may come, so readers leave alone what they do not know. Times are in
microseconds, and null where there are no samples. How the clocks and counts are meant in every case:
[engine.md](engine.md#weir-engine-load-the-records).

```sh
weir load http://127.0.0.1:8000/ -R 500 -d 10s --json - | jq '.response_time_us.p99, .verdict'
```
"""
_OBJECTIVES = """\
The keys of `objectives` and `aborted`: [objectives.md](objectives.md).
"""
_SERVER = """\
## `server`

With `--watch PID`: what the server's processes used during the load, and beside the keys below `pids`, the list of whole numbers that
was asked for. Left out without it.
"""


def page() -> str:
    """The page."""
    load = described(LoadSummary.model_json_schema(by_alias=True), records)
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
