"""Writes the study for a command line of `weir compare`. Each side is a command, a URL, or a stack that weir knows."""

import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

import tomli_w

from weir.generators.scripted.script_settings import has_pauses
from weir.load_spec import DEFAULT_CONNECTIONS, FLAG_NAMES, LoadSpec
from weir.model.errors import UsageError
from weir.model.load import Profile
from weir.parsing import write_profile
from weir.stacks.manifest import RUN_FIELDS, find_unknown_field, list_manifest_files
from weir.study.load import drop_decimal_point, write_load_table

WORKLOAD = "request"
"""Name of the workload that the study defines."""
QUICK_BLOCKS = 4
"""Minimum number of blocks of a comparison. With fewer blocks, an interval is too often narrow by chance."""
EVIDENCE_BLOCKS, EVIDENCE_S = 10, 10
"""Number of blocks, and seconds of each load, in the scale `evidence` of a saved study."""
_INTERPRETERS = frozenset(
    {"python", "python3", "node", "java", "php", "ruby", "perl", "sh", "bash", "deno", "bun", "uv", "npx", "npm", "env"}
)
_SUBCOMMANDS = frozenset({"run", "exec", "start"})
_OPTIONS_WITH_VALUE = frozenset({"-X", "-W", "-cp", "-classpath", "-r", "--require", "--import", "-t", "-d"})
"""Options of interpreters whose value is the next word."""
_MAX_TITLE = 30
_STACK = re.compile(r"([a-z0-9][a-z0-9-]*)(\[[^\[\]]+\])?")
_ADDRESS = re.compile(r"(localhost|[\w.-]+:\d+|\[[\da-f:]+\](:\d+)?)(/\S*)?")
"""A URL without its scheme."""
_HELP = "weir compare --help"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the servers that a comparison compares."""

    text: str
    """The command, the URL, or the label of the stack."""
    kind: str
    """Kind of `text`: `command`, `url` or `stack`."""
    title: str = ""
    """Short unique name of the side in messages and reports."""
    name: str = ""
    """Unique name of the side in the study file."""
    folder: str = "."
    """Working directory of a command."""
    env: Mapping[str, str] | None = None
    commit: str = ""
    """The commit that the user gave, such as `main`. Empty: the command starts in the user's folder."""
    pids: tuple[int, ...] = ()
    """Process ids of the server at a URL."""

    @property
    def path(self) -> str | None:
        """Path and query of the side's URL. None if the URL does not have a path, or if the side is not a URL."""
        url = urlsplit(self.text) if self.kind == "url" else None
        return None if url is None or url.path in ("", "/") else f"{url.path}{'?' if url.query else ''}{url.query}"


def parse_side(text: str) -> Side:
    """Returns the side that an argument of the command line names. Raises UsageError for an unknown word."""
    if text.startswith(("http://", "https://")):
        _check_url(text)
        return Side(text, "url")
    if not text.strip():
        raise UsageError(f"SIDE: found {text!r}, expected a command, a URL or a stack of weir", hint=_HELP)
    if _ADDRESS.fullmatch(text) and shutil.which(text) is None:
        raise UsageError(f"SIDE: found {text!r}, expected a URL that begins with http://", hint=f"http://{text}")
    match = _STACK.fullmatch(text)
    stacks = [path.parent.name for path in list_manifest_files()]
    if match is not None and match[1] in stacks:
        return Side(text, "stack")
    if match is not None and shutil.which(text) is None:
        known = get_close_matches(match[1], stacks, 1)
        hint = f"did you mean {known[0]}?" if known else "weir stacks list"
        raise UsageError(f"SIDE: found {text!r}, expected a command, a URL or a stack of weir", hint=hint)
    check_fields(text)
    return Side(text, "command")


def check_fields(command: str) -> None:
    """Raises UsageError if a command contains a field that weir does not know, such as `{prot}`."""
    if (field := find_unknown_field(command, RUN_FIELDS)) is not None:
        found = f"SIDE: found the unknown field {field} in {command!r}, expected {{host}} or {{port}}"
        raise UsageError(found, hint=_HELP)


def _check_url(text: str) -> None:
    """Raises UsageError if a URL has no valid host or port, or contains a password."""
    try:
        url = urlsplit(text)
        is_valid = bool(url.hostname) and url.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise UsageError(
            f"SIDE: found {text!r}, expected http://HOST[:PORT]/PATH with a port from 1 to 65535", hint=_HELP
        )
    if url.username is not None:
        found = f"SIDE: found a name and a password in the URL of {url.hostname}, expected them in a header"
        raise UsageError(found, hint="-H 'Authorization: Basic TOKEN'; TOKEN is NAME:PASSWORD in base64")


def name_sides(sides: Sequence[Side]) -> list[Side]:
    """Returns the sides with unique titles and unique names."""
    titles = [side.title or _suggest_title(side) for side in sides]
    if len(set(titles)) < len(titles):
        titles = [
            title if titles.count(title) == 1 else _add_differences(title, side, sides)
            for title, side in zip(titles, sides, strict=True)
        ]
    taken = {path.parent.name for path in list_manifest_files()}
    named: list[Side] = []
    for title, side in zip(titles, sides, strict=True):
        before = sum(one.title.partition(" #")[0] == title for one in named)
        # No "(2)" here, because findings cut a title at "(".
        unique = f"{title} #{before + 1}" if titles.count(title) > 1 else title
        name = side.text
        if side.kind != "stack":
            slug = re.sub(r"[^a-z0-9]+", "-", unique.lower()).strip("-") or "server"
            name = f"{slug}-command" if slug in taken else slug
            taken.add(name)
        named.append(replace(side, title=unique, name=name))
    return named


def _suggest_title(side: Side) -> str:
    """Returns a title: the program of a command, the host and path of a URL, or the label of a stack."""
    if side.kind == "url":
        url = urlsplit(side.text)
        return f"{url.netloc}{url.path.rstrip('/')}"
    if side.kind == "stack":
        return side.text
    words = [word for word in _split(side.text) if not re.match(r"\w+=", word)]
    program = PurePath(words[0]).name if words else "server"
    if program in _INTERPRETERS:
        plain = [
            word
            for before, word in pairwise(words)
            if not word.startswith("-") and word not in _SUBCOMMANDS and before not in _OPTIONS_WITH_VALUE
        ]
        if plain and "{" not in plain[0] and not plain[0][0].isdigit():
            return PurePath(plain[0]).name
    return program


def _add_differences(title: str, side: Side, sides: Sequence[Side]) -> str:
    """Returns the title, followed by the words of `side` that are missing in at least one other side."""
    others = [set(_split(one.text)) for one in sides if one is not side]
    differing = [word for word in _split(side.text) if not all(word in words for words in others)]
    both = " ".join([title, *(word for word in differing if word != title)])
    return both if len(both) <= _MAX_TITLE else both[: _MAX_TITLE - 1] + "…"


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        problem = f"found {command!r}, expected a valid shell command: {error}"
        raise UsageError(f"SIDE: {problem}", hint=_HELP) from None


def choose_path(sides: Sequence[Side], path: str | None) -> str:
    """Returns the request path for all sides: `path`, or the path of the URLs. Raises UsageError if paths differ."""
    of_urls = {side.path for side in sides if side.kind == "url"}
    if path is not None:
        if of_urls - {None, path}:
            raise UsageError(f"--path: found {path} and another path in a URL, expected only one path")
        return path
    if len(of_urls) > 1:
        found = ", ".join(sorted(one or "/" for one in of_urls))
        raise UsageError(
            f"URL: found the paths {found}, expected the same path for each side", hint="http://HOST:PORT --path PATH"
        )
    return next(iter(of_urls), None) or "/"


def write_study(
    sides: Sequence[Side],
    spec: LoadSpec,
    *,
    workload: str | None,
    answer: Mapping[str, Any],
    warmups_s: Mapping[str, float],
    precision: float,
    budget_s: float,
    ready: Mapping[str, Any],
    script: tuple[str, str] | None = None,
    scheme: str = "http",
) -> str:
    """Returns the TOML text of a study that compares the sides under a load.

    Args:
        sides: sides with names. The first side is the baseline, and runs twice in each block.
        spec: the load. The path of the load's URL is the path of the request.
        workload: name of a built-in workload. None: the study sends the request of `spec`.
        answer: the table `[workload.request.answer]`, which describes a correct response.
        warmups_s: a dict from the name of a side to seconds of warm-up.
        precision: relative half width of the confidence interval at which the run ends.
        budget_s: maximum time of all trials together.
        ready: the table `ready` of each server that weir starts.
        script: the tool that makes the load, and its script with arguments. None: weir's engine makes the load.
        scheme: scheme of the URLs of each server that weir starts.
    """
    first = sides[0].name
    name = workload or WORKLOAD
    titles = " or ".join(side.title for side in sides)
    # A load that limits the throughput shows a difference only in the response times.
    is_limited = spec.to_load(FLAG_NAMES).limits_throughput
    if script is not None:
        is_limited |= has_pauses(script[0], Path(shlex.split(script[1])[0]))
    width_of = {"width_of": "response_time_us.p50"} if is_limited else {}
    most_s = max(warmups_s.values())
    content: dict[str, Any] = {
        "schema": 1,
        "title": " and ".join(side.title for side in sides),
        "question": f"Which has the {'shorter response time' if is_limited else 'higher throughput'}: {titles}?",
        "matrix": {"stacks": [side.name for side in sides], "workloads": [name], **choose_amount(spec)},
        "load": write_load_table(spec),
        "method": {
            "blocks": QUICK_BLOCKS, "baseline": first, "aa": first, "warmup_s": most_s, "pause_s": 0.1,
            "seed": spec.seed or 1,
        },
        "scales": {
            "quick": {"method": {"width": precision, "budget_s": budget_s, **width_of}},
            "evidence": {"method": {"blocks": EVIDENCE_BLOCKS}, "load": {"duration_s": EVIDENCE_S}},
        },
    }  # fmt: skip
    for side in sides:
        title = {"title": side.title}
        if side.kind == "url":
            url = urlsplit(side.text)
            table: dict[str, Any] = {"url": f"{url.scheme}://{url.netloc}", "serves": [name], **title}
            content.setdefault("external", {})[side.name] = table | ({"pids": list(side.pids)} if side.pids else {})
        elif side.kind == "command":
            table = {"command": side.text, "folder": side.folder, "serves": [name], **title}
            table |= {"env": dict(side.env)} if side.env else {}
            table |= {"scheme": scheme} if scheme != "http" else {}
            content.setdefault("server", {})[side.name] = table | ({"ready": dict(ready)} if ready else {})
    if script is not None:
        content["matrix"]["generators"], content["load"]["script"] = [script[0]], script[1]
    if spec.scenario_file is not None:
        content["load"]["scenario"] = str(Path(spec.scenario_file).absolute())
    shorter = {side.name: warmups_s[side.name] for side in sides if warmups_s[side.name] < most_s}
    if shorter:
        content["override"] = [{"where": {"stack": one}, "method": {"warmup_s": s}} for one, s in shorter.items()]
    if workload is None:
        url = urlsplit(spec.urls[0])
        path = f"{url.path or '/'}{'?' if url.query else ''}{url.query}"
        request: dict[str, Any] = {"method": spec.to_plan().request.method, "path": path}
        request |= {"headers": dict(spec.headers)} if spec.headers else {}
        request |= {} if spec.body is None else {"body": spec.body.decode()}
        content["workload"] = {name: {"request": request, "answer": dict(answer)}}
    return tomli_w.dumps(content)


def choose_amount(spec: LoadSpec) -> dict[str, Any]:
    """Returns the keys of `[matrix]` for the load's users, connections or rate."""
    if spec.users is not None and spec.rate_rps is None:
        return {"users": [_write_level(spec.users)]}
    rate = {} if spec.rate_rps is None else {"rate_rps": [_write_level(spec.rate_rps)]}
    return {"connections": [spec.connections or DEFAULT_CONNECTIONS], **rate}


def _write_level(profile: Profile) -> int | float | str:
    return write_profile(profile) if isinstance(profile, tuple) else drop_decimal_point(profile)
