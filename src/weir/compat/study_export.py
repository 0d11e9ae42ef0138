"""Formats a load as a study of one server, and a scenario as a scenario file, both in TOML. The study has one cell with
the same load. `list_study_notes` lists the differences between the study and the load."""

import re
from collections.abc import Iterator
from textwrap import fill, indent
from typing import Any
from urllib.parse import urlsplit

import tomli_w

from weir.compat.flags import format_path
from weir.load_spec import KEY_NAMES, LoadSpec
from weir.model.errors import UsageError
from weir.scenario import Scenario
from weir.study.comparison import choose_amount
from weir.study.load import list_request_obstacles, write_load_table

SERVER = "server"
WORKLOAD = "asked"
"""The names of the server and of the workload in the study."""
_LIST = re.compile(r"\[\n((?:    [^\n\[{]*,\n)+)\]")
_LONGEST_LINE = 100
_BLOCKS = 4
_STATUS = 200
_INSTEAD = "weir convert --command ... writes a weir load command line"


def build_study(spec: LoadSpec, *, title: str, scenario: Scenario | None = None) -> str:
    """Returns a study in TOML for a load with a duration. Raises UsageError if a study cannot express the load."""
    if problem := next(_list_obstacles(spec, has_scenario=scenario is not None), None):
        raise UsageError(problem, hint=_INSTEAD if scenario is None else "leave out --study")
    url = urlsplit(spec.urls[0])
    load = write_load_table(spec)
    content: dict[str, Any] = {
        "schema": 1,
        "title": title,
        "question": f"How does {url.netloc} answer {spec.to_load(KEY_NAMES).label}?",
        "matrix": {"stacks": [SERVER], "workloads": [WORKLOAD], **choose_amount(spec)},
        "load": load,
        "method": {"blocks": _BLOCKS, "baseline": SERVER} | ({"seed": spec.seed} if spec.seed else {}),
        "external": {SERVER: {"url": f"http://{url.netloc}", "serves": [WORKLOAD]}},
    }
    status = _STATUS
    if scenario is None:
        method, path = spec.to_plan().request.method, format_path(url)
        request: dict[str, Any] = {"method": method, "path": path, "headers": dict(spec.headers)}
        request |= {} if spec.body is None else {"body": spec.body.decode()}
    else:
        load["scenario"] = _build_table(scenario)
        request, status = _choose_check(scenario)
    given = {key: value for key, value in request.items() if value != {}}
    content["workload"] = {WORKLOAD: {"request": given, "answer": {"status": status}}}
    return _format_toml(content)


def list_study_notes(spec: LoadSpec, *, has_scenario: bool) -> list[str]:
    """Returns a sentence, without a full stop, for each difference between a study and one load."""
    notes = [
        f"a study runs the load in {_BLOCKS} blocks, with a warm-up, and checks responses before and after each trial",
        "workload.asked is the request that weir sends before and after each trial to check the server"
        if has_scenario
        else "a study accepts only one status as right: workload.asked.answer.status",
    ]
    if spec.threads > 1 or spec.cpus:
        chosen = "the study chooses the generator's CPUs ([cpus] load)"
        notes.append(f"{chosen}, and runs one generator thread on each CPU; the load has {spec.threads} threads")
    return notes


def format_scenario(scenario: Scenario) -> str:
    """Returns a scenario file (TOML) for `weir load --scenario`."""
    return _format_toml(_build_table(scenario))


def _list_obstacles(spec: LoadSpec, *, has_scenario: bool) -> Iterator[str]:
    """Yields a message for each property of a load that a study cannot express."""
    if len(spec.urls) > 1:
        yield f"URL: found {len(spec.urls)} URLs, expected one: a study has one address for each server"
    if not spec.urls[0].lower().startswith("http://"):
        yield f"URL: found {spec.urls[0]!r}, expected http://HOST[:PORT]/PATH: studies use TCP without TLS"
    if spec.connect_to is not None or spec.bind:
        found = spec.connect_to or spec.bind[0]
        yield f"found the address {found}, expected no address: a study connects to the URL's host"
    if has_scenario:
        return
    yield from list_request_obstacles(spec)


def _build_table(scenario: Scenario) -> dict[str, Any]:
    return scenario.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)


def _choose_check(scenario: Scenario) -> tuple[dict[str, Any], int]:
    """Returns a request that checks the server (the first GET without placeholders), and the right status."""
    for step in scenario.steps or scenario.requests:
        status = step.check.status or [_STATUS]
        is_plain = step.body is None and "{{" not in "".join([step.path, *step.headers.values()])
        if step.method == "GET" and is_plain and len(status) == 1 and step.path.startswith("/"):
            return {"path": step.path, "headers": step.headers}, status[0]
    return {"path": "/"}, _STATUS


def _format_toml(content: dict[str, Any]) -> str:
    """Formats TOML: puts short lists on one line, and wraps long lists of numbers. Texts must have no line breaks."""

    def join_lines(match: re.Match[str]) -> str:
        items = ", ".join(line.strip().removesuffix(",") for line in match.group(1).splitlines())
        if len(items) <= _LONGEST_LINE:
            return f"[{items}]"
        return match.group(0) if '"' in items else f"[\n{indent(fill(items, _LONGEST_LINE), '    ')},\n]"

    return _LIST.sub(join_lines, tomli_w.dumps(content))
