"""A load as a study of one server, and what its users do as a scenario file, both as TOML.

Pure: a plan in, text out. `weir study check` takes what is printed as it is, and its one cell has the plan's load; what a study says in its
own way (the generator's CPUs, which answers are right) is in `study_notes`.
"""

import random
import re
from collections.abc import Iterator, Sequence
from textwrap import fill, indent
from typing import Any
from urllib.parse import SplitResult, urlsplit

import tomli_w

from weir.compat.native import profile_text, ramp_of, think_text
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, LoadPlan, OpenLoad, Profile
from weir.scenario import Scenario
from weir.stacks.workload import render

SERVER = "server"
WORKLOAD = "asked"
"""What the study calls them."""
_LIST = re.compile(r"\[\n((?:    [^\n\[{]*,\n)+)\]")
_LONGEST_LINE = 100
_BLOCKS = 4
_STATUS = 200
_INSTEAD = "weir convert --command ... makes a weir load command line of it"


def study_of(plan: LoadPlan, *, title: str, scenario: Scenario | None = None, objectives: Sequence[str] = ()) -> str:
    """The study that asks what a plan asks, in TOML.

    Args:
        plan: the load.
        title: the study's.
        scenario: what users do instead of the plan's one request.
        objectives: what must hold, as for `weir load --objective`.

    Raises:
        UsageError: a study cannot ask that.
    """
    if problem := next(_not_in_a_study(plan, has_scenario=scenario is not None), None):
        raise UsageError(problem, hint=_INSTEAD if scenario is None else "leave out --study")
    url = urlsplit(plan.request.target)
    amount, load = _amount_and_load(plan)
    content: dict[str, Any] = {
        "schema": 1,
        "title": title,
        "question": f"How does {url.netloc} answer {plan.load.label}?",
        "matrix": {"stacks": [SERVER], "workloads": [WORKLOAD], **amount},
        "load": load,
        "method": {"blocks": _BLOCKS, "baseline": SERVER} | ({"seed": plan.seed} if plan.seed else {}),
        "objective": {"hold": list(objectives)},
        "external": {SERVER: {"url": f"http://{url.netloc}", "serves": [WORKLOAD]}},
    }
    if not objectives:
        del content["objective"]
    if scenario is None:
        request: dict[str, Any] = {"method": plan.request.method, "path": _asked_path(url), "headers": dict(plan.request.headers)}
        request |= {} if plan.request.body is None else {"body": plan.request.body.decode()}
        status = plan.expected_status[0] if plan.expected_status else _STATUS
    else:
        load["scenario"] = _table(scenario)
        request, status = _first_question(scenario)
    given = {key: value for key, value in request.items() if value != {}}
    content["workload"] = {WORKLOAD: {"request": given, "answer": {"status": status}}}
    return _toml(content)


def study_notes(plan: LoadPlan, *, has_scenario: bool) -> list[str]:
    """What a study does otherwise than one load, a sentence each, without a full stop."""
    notes = [f"a study repeats: {_BLOCKS} blocks, each primed with the same load, its answers checked before and after"]
    if has_scenario:
        notes.append("workload.asked is what weir asks before and after each trial, to see that the server answers right")
    elif plan.expected_status is None or len(plan.expected_status) > 1:
        notes.append("a study takes one status as right: workload.asked.answer.status")
    if plan.threads > 1 or plan.cpus:
        notes.append(f"the generator has a thread on each CPU of [cpus] load, which a study chooses by itself, in place of {plan.threads}")
    return notes


def scenario_of(scenario: Scenario) -> str:
    """A scenario as the TOML that `weir load --scenario` reads."""
    return _toml(_table(scenario))


def _amount_and_load(plan: LoadPlan) -> tuple[dict[str, Any], dict[str, Any]]:
    """`[matrix]`, as far as it says how much there is, and `[load]`."""
    load: dict[str, Any] = {"duration_s": _number(plan.duration_s), "timeout_s": _number(plan.timeout_s)}
    match plan.load:
        case OpenLoad(rate_rps, connections, arrivals, session):
            amount: dict[str, Any] = {"connections": [connections], "rates_rps": [_level(rate_rps)]}
            load |= {"arrivals": arrivals} if arrivals != "constant" else {}
            loops, think = (None, None) if session is None else (session.requests, session.think)
        case ClosedLoad(users, think, loops, pace_s):
            if not isinstance(users, tuple):
                amount = {"connections": [int(users)]}
            elif ramp := ramp_of(users):
                amount = {"users": [_number(ramp[0])]}
                load["ramp_s"] = _number(ramp[1])
            else:
                amount = {"users": [_level(users)]}
            load |= {} if pace_s is None else {"pace_s": _number(pace_s)}
    load |= {} if think is None else {"think": think_text(think)}
    load |= {} if loops is None else {"loops": loops}
    load |= {} if plan.requests is None else {"requests": plan.requests}
    load |= {} if plan.keep_alive else {"keep_alive": False}
    load |= {"pipeline": plan.pipeline} if plan.pipeline != 1 else {}
    load |= {"until_first_failure": True} if plan.until_first_failure else {}
    load |= {"kernel_timestamps": True} if plan.kernel_timestamps else {}
    return amount, load


def _not_in_a_study(plan: LoadPlan, *, has_scenario: bool) -> Iterator[str]:
    """Why a study cannot ask for a plan."""
    target = plan.request.target
    if plan.targets:
        yield f"URL: found {len(plan.targets)}, expected one: a study has one address for each server"
    if not target.lower().startswith("http://"):
        yield f"URL: found {target!r}, expected http://HOST[:PORT]/PATH: studies are over TCP alone, without TLS"
    if plan.address is not None or plan.local_addresses:
        yield f"found the address {plan.address or plan.local_addresses[0]}, expected none: a study connects to the URL's host"
    if has_scenario:
        return
    names = [name.lower() for name, _ in plan.request.headers]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        yield f"headers: found {twice[0]!r} twice, expected every header once in a study"
    for what, text in (("URL", target.encode()), ("body", plan.request.body or b"")):
        try:
            is_plain = render(text.decode().strip(), random.Random(0)).encode() == text
        except ValueError:
            is_plain = False
        if not is_plain:
            yield f"{what}: found {text[:40]!r}, expected text without {{{{, and without white space around it, in a study"


def _table(scenario: Scenario) -> dict[str, Any]:
    return scenario.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)


def _first_question(scenario: Scenario) -> tuple[dict[str, Any], int]:
    """What can be asked by itself of a server that users do a scenario with, and the right status: its first GET without placeholders."""
    for step in scenario.steps or scenario.requests:
        status = step.check.status or [_STATUS]
        is_plain = step.body is None and "{{" not in "".join([step.path, *step.headers.values()])
        if step.method == "GET" and is_plain and len(status) == 1 and step.path.startswith("/"):
            return {"path": step.path, "headers": step.headers}, status[0]
    return {"path": "/"}, _STATUS


def _asked_path(url: SplitResult) -> str:
    path = url.path or "/"
    return f"{path}?{url.query}" if url.query else path


def _level(profile: Profile) -> int | float | str:
    return profile_text(profile) if isinstance(profile, tuple) else _number(profile)


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _toml(content: dict[str, Any]) -> str:
    """TOML with short lists on one line, and numbers beside one another.

    A line break inside a text is written as an escape, so that each in the TOML is between values.
    """

    def drawn_together(match: re.Match[str]) -> str:
        items = ", ".join(line.strip().removesuffix(",") for line in match.group(1).splitlines())
        if len(items) <= _LONGEST_LINE:
            return f"[{items}]"
        return match.group(0) if '"' in items else f"[\n{indent(fill(items, _LONGEST_LINE), '    ')},\n]"

    return _LIST.sub(drawn_together, tomli_w.dumps(content))
