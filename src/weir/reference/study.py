"""docs/reference/study.md, from the types that read study files."""

from weir.reference.tables import Sections
from weir.study.schema import json_schema

_HEAD = """\
# The study file

<!-- Made by `make reference` from the types in src/weir/study. Change the docstrings there. -->

A study is a question as a TOML file: `weir run FILE` answers it, `weir study check FILE` says beforehand what that takes. How to write one:
[guides/studies.md](../guides/studies.md). Unknown keys are errors. For editors: `weir study schema > study.schema.json`, and
`#:schema ./study.schema.json` as the study's first line.

- A **list of numbers** is a number, a list, or numbers and ranges as text: `50`, `[4, 50, 100]`, `"4, 50..500 step 50"` (a range's end
  belongs to it; without a step it is 1; at most 1,000 numbers).
- A **profile** is an amount over time, linear between its points: `"0s:0,30s:500,60s:0"`.
"""
_TAIL = """\
## `[scales.NAME]`

Any of the tables above below a scale's name: `[scales.quick.load]` with `duration_s = 6`. `weir run STUDY --scale NAME` takes them. A key
takes the place of the same key; a list of tables (`[[scales.quick.override]]`) is added to the study's own, so that a later override
wins; any other list takes the place of the whole list. Without `--scale` the scale is `evidence`, else the first.
"""


def page() -> str:
    """The page."""
    schema = json_schema()
    return "\n".join([_HEAD, Sections(schema["$defs"], "toml").of(schema, "The file itself"), _TAIL])
