"""A load in weir's own words: the `weir load` command line that makes it.

Pure: a plan in, text out. `weir load` reads it back into an equal plan, but for what no flag says: the statuses that are right, the length
of intervals and the request log. `native_study` says the same as a study. A front end pays for every import here before its load begins.
"""

import re
import shlex
from dataclasses import replace
from decimal import Decimal
from urllib.parse import urlsplit

from weir.asked_load import CONNECTIONS
from weir.model.load import ClosedLoad, Load, LoadPlan, OpenLoad, Profile, Request, Think, ThinkTime, Tls

_UNITS_S = (("h", 3600), ("m", 60), ("s", 1))
_LONGEST_ARGUMENT = 128 * 1024
"""Bytes of one argument that Linux takes, its last zero included."""
_TIMEOUT_S = 2.0


def command_of(plan: LoadPlan, *, body_file: str | None = None, scenario_file: str | None = None) -> str:
    """The `weir load …` command line that makes this load, quoted for a shell.

    Args:
        plan: the load.
        body_file: the file that the body was read from. Without one, a body that is no argument (binary, too long, or with @ in front) is
            said to be in a file `body`.
        scenario_file: the file that holds what users do, in place of the plan's one request.
    """
    return shlex.join(["weir", "load", *arguments_of(plan, body_file=body_file, scenario_file=scenario_file)])


def arguments_of(plan: LoadPlan, *, body_file: str | None = None, scenario_file: str | None = None) -> list[str]:
    """What stands behind `weir load`; as `command_of`."""
    plan = as_asked(plan)
    arguments = [*(plan.targets or (plan.request.target,)), *_load_flags(plan.load)]
    arguments += ["-d", duration_text(plan.duration_s)]
    arguments += [] if plan.requests is None else ["-n", str(plan.requests)]
    arguments += ["-t", str(plan.threads)] if plan.threads != 1 else []
    arguments += ["--cpus", ",".join(map(str, plan.cpus))] if plan.cpus else []
    arguments += ["--scenario", scenario_file] if scenario_file is not None else _request_flags(plan.request, body_file)
    arguments += ["--timeout", duration_text(plan.timeout_s)] if plan.timeout_s != _TIMEOUT_S else []
    arguments += ["--until-failure"] if plan.until_first_failure else []
    arguments += ["--seed", str(plan.seed)] if plan.seed else []
    arguments += [] if plan.keep_alive else ["--no-keepalive"]
    arguments += ["--pipeline", str(plan.pipeline)] if plan.pipeline != 1 else []
    arguments += [] if plan.address is None else ["--connect-to", plan.address]
    arguments += ["--bind", ",".join(plan.local_addresses)] if plan.local_addresses else []
    arguments += [] if plan.tls is None else _tls_flags(plan.tls)
    arguments += ["--kernel-timestamps"] if plan.kernel_timestamps else []
    return arguments


def as_asked(plan: LoadPlan) -> LoadPlan:
    """A plan as people ask for it: without the headers that the engine writes by itself, and without waiting for the last answers."""
    host = urlsplit(plan.request.target).netloc.lower()
    own = {("host", host), ("host", re.sub(":(80|443)$", "", host)), ("connection", "keep-alive" if plan.keep_alive else "close")}
    given = [(name, value) for name, value in plan.request.headers if name.lower() != "content-length"]
    headers = tuple((name, value) for name, value in given if (name.lower(), value.lower()) not in own)
    plan = replace(plan, request=replace(plan.request, headers=headers), request_log=None)
    match plan.load:
        case ClosedLoad(users=(*before, (end_s, last), (left_s, 0.0))) if end_s == left_s == plan.duration_s - plan.timeout_s and before:
            is_constant = len(before) == 1 and before[0] == (0.0, last)
            users: Profile = last if is_constant else (*before, *(() if before[-1][1] == last else ((end_s, last),)))
            return replace(plan, load=replace(plan.load, users=users), duration_s=end_s)
    return plan


def duration_text(length_s: float) -> str:
    """A duration as `weir load` takes it, exactly: 1h, 90s, 500ms or 0.1234567s.

    >>> duration_text(7200.0), duration_text(0.5)
    ('2h', '500ms')
    """
    for unit, unit_s in _UNITS_S:
        if length_s % unit_s == 0 and length_s:
            return f"{int(length_s // unit_s)}{unit}"
    milliseconds = round(length_s * 1e3)
    return f"{milliseconds}ms" if length_s < 1 and milliseconds * 0.001 == length_s else f"{number_text(length_s)}s"


def number_text(value: float) -> str:
    """A number in digits alone, without an exponent, exactly."""
    whole = int(value)
    return str(whole) if whole == value else format(Decimal(repr(value)), "f")


def profile_text(profile: Profile) -> str:
    """A number, or points over time, as `weir load` and studies take them: 0s:100,30s:1000."""
    if not isinstance(profile, tuple):
        return number_text(profile)
    return ",".join(f"{number_text(t_s)}s:{number_text(value)}" for t_s, value in profile)


def think_text(think: ThinkTime) -> str:
    """A pause as `weir load` and studies take it: 1s, uniform:1s..3s or exp:2s."""
    if not isinstance(think, Think):
        return f"exp:{duration_text(think.mean_s)}"
    if think.shortest_s == think.longest_s:
        return duration_text(think.longest_s)
    return f"uniform:{duration_text(think.shortest_s)}..{duration_text(think.longest_s)}"


def ramp_of(users: Profile) -> tuple[float, float] | None:
    """Of users who come one by one from nobody on: how many there are in the end, and how long that takes in seconds."""
    match users:
        case ((0.0, 0.0), (ramp_s, most)) if ramp_s > 0 and most == int(most):
            return most, ramp_s
    return None


def _load_flags(load: Load) -> list[str]:
    if isinstance(load, OpenLoad):
        flags = ["-R", profile_text(load.rate_rps)]
        flags += ["-c", str(load.connections)] if load.connections != CONNECTIONS else []
        flags += ["--poisson"] if load.arrivals == "poisson" else []
        loops, think = (None, None) if load.session is None else (load.session.requests, load.session.think)
    else:
        flags = _user_flags(load)
        loops, think = load.loops, load.think
    flags += [] if loops is None else ["--loops", str(loops)]
    flags += [] if think is None else ["--think", think_text(think)]
    return flags


def _user_flags(load: ClosedLoad) -> list[str]:
    pace = [] if load.pace_s is None else ["--pace", duration_text(load.pace_s)]
    if not isinstance(load.users, tuple):
        return ["-c", number_text(load.users), *pace]
    ramp = ramp_of(load.users)
    if ramp is None:
        return ["--users", profile_text(load.users), *pace]
    return ["--users", number_text(ramp[0]), "--ramp", duration_text(ramp[1]), *pace]


def _request_flags(request: Request, body_file: str | None) -> list[str]:
    flags = ["-m", request.method] if request.method != ("GET" if request.body is None else "POST") else []
    for name, value in request.headers:
        flags += ["-H", f"{name}: {value}"]
    if request.body is not None:
        flags += ["-b", f"@{body_file}" if body_file is not None else _as_argument(request.body)]
    return flags


def _as_argument(body: bytes) -> str:
    """A body as the value of `-b`."""
    if body.startswith(b"@") or b"\0" in body or len(body) >= _LONGEST_ARGUMENT:
        return "@body"
    try:
        return body.decode()
    except UnicodeDecodeError:
        return "@body"


def _tls_flags(tls: Tls) -> list[str]:
    named = (("--cacert", tls.ca), ("--cert", tls.certificate), ("--key", tls.key), ("--sni", tls.server_name))
    flags = [part for flag, value in named if value is not None for part in (flag, value)]
    flags += ["--insecure"] if tls.insecure else []
    flags += [] if tls.resumption else ["--no-tls-resumption"]
    return flags
