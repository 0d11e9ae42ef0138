"""Generates docs/reference/study.md from the types that read study files."""

from scripts.reference.tables import Sections
from weir.study.schema import build_json_schema

_HEAD = """\
# The study file

<!-- Made by `make reference` from the types in src/weir/study. Change the docstrings there. -->

A study is a TOML file with a question. `weir run FILE` answers the question. `weir study check FILE` shows the trials of the study, their
time, and the smallest difference that they can detect; it starts nothing. The guide [guides/studies.md](../guides/studies.md) shows how to
write a study. Unknown keys are errors.

For editors: write the JSON Schema with `weir study schema > study.schema.json`. Then make `#:schema ./study.schema.json` the first line of
the study.

- A **list of numbers** is a number, a list, or text with numbers and ranges: `50`, `[4, 50, 100]`, `"4, 50..500 step 50"`. A range includes
  its end. The default step is 1. A list has at most 1,000 numbers.
- A **profile** is an amount over time, linear between its points: `"0s:0,30s:500,60s:0"`.
"""
_TAIL = """\
## `[scales.NAME]`

A scale has any of the tables above, under its name: `[scales.quick.load]` with `duration_s = 6`. `weir run STUDY --scale NAME` applies it.

- A key of the scale replaces the same key of the study.
- weir appends a list of tables (`[[scales.quick.override]]`) to the study's list. Later overrides win.
- Any other list replaces the whole list of the study.
- Without `--scale`, weir applies the scale `evidence`. If the study has no such scale, weir applies the first one.
"""


def page() -> str:
    schema = build_json_schema()
    return "\n".join([_HEAD, Sections(schema["$defs"], "toml").of(schema, "The file itself"), _TAIL])
