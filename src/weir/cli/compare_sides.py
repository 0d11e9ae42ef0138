"""Turns the arguments of `weir compare` into sides: commands, URLs, stacks, commits, and values of a variable."""

import itertools
import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from weir.host import Host
from weir.lab.study_run import run_build_command
from weir.model.errors import UsageError
from weir.stacks.checkout import WORKING_TREE, check_out
from weir.study.comparison import Side, check_fields, name_sides, parse_side

HELP = "weir compare --help"
_PLAIN = re.compile(r"[\w@%+=:,./{}-]+")


def collect_sides(
    texts: Sequence[str],
    words: Sequence[str] | None,
    *,
    git: bool,
    build: str | None,
    env: Sequence[str],
    watch: str | None,
) -> list[Side]:
    """Returns the sides of the command line, with names. `words` are the words after `--`. `check_out_commits` later
    sets the folders of commits. Raises UsageError if arguments contradict each other or name fewer than two sides."""
    if build is not None and not git:
        raise UsageError("--build: found without --git, expected both", hint=HELP)
    if git or env:
        sides = _vary_command(texts, words, git=git, env=env)
    elif words is not None:
        hint = "quote each command: weir compare 'COMMAND' 'COMMAND'"
        raise UsageError("--: found without --git or --env, expected one of these flags", hint=hint)
    else:
        sides = [replace(parse_side(text), folder=os.getcwd()) for text in texts]
    if len(sides) < 2:
        raise UsageError(f"SIDE: found {len(sides)}, expected two or more servers to compare", hint=HELP)
    return name_sides(_add_pids(sides, watch))


def _vary_command(texts: Sequence[str], words: Sequence[str] | None, *, git: bool, env: Sequence[str]) -> list[Side]:
    """Returns a side for each commit and each combination of values. All sides have the same command."""
    if not words:
        option = "--git" if git else "--env"
        raise UsageError(f"{option}: found no command, expected -- COMMAND after the options", hint=HELP)
    if git and len(texts) < 2:
        found = f"--git: found {len(texts)} commits, expected two or more"
        raise UsageError(found, hint="name two: --git main HEAD -- COMMAND")
    if not git and texts:
        raise UsageError(f"SIDE: found {texts[0]!r} together with --env, expected only the command after --", hint=HELP)
    # Fields such as {port} need no quotes.
    quoted = (one if _PLAIN.fullmatch(one) else shlex.quote(one) for one in words)
    command = words[0] if len(words) == 1 else " ".join(quoted)
    sides = []
    for commit in texts if git else [""]:
        for values in itertools.product(*map(_read_values, env)):
            text = command
            for name, value in values:
                text = text.replace(f"{{{name}}}", value)
            check_fields(text)
            title = " ".join([*_name_commit(commit), *(f"{name}={value}" for name, value in values)])
            sides.append(Side(text, "command", title, folder=os.getcwd(), env=dict(values), commit=commit))
    return sides


def _name_commit(commit: str) -> list[str]:
    return ["working tree" if commit == WORKING_TREE else commit] if commit else []


def _read_values(text: str) -> list[tuple[str, str]]:
    name, equals, values = text.partition("=")
    if not equals or re.fullmatch(r"[A-Za-z_]\w*", name) is None or not values:
        raise UsageError(f"--env: found {text!r}, expected NAME=A,B: a name and its values", hint=HELP)
    return [(name, value) for value in values.split(",")]


def _add_pids(sides: Sequence[Side], watch: str | None) -> list[Side]:
    """Returns the same sides. A side with a URL also has the process id from `--watch`."""
    if watch is None:
        return list(sides)
    urls = [side for side in sides if side.kind == "url"]
    pids = watch.split(",")
    if len(pids) != len(urls) or not all(pid.isdecimal() for pid in pids):
        found = f"--watch: found {watch!r}, expected a process id for each URL ({len(urls)})"
        raise UsageError(found, hint="run ss -ltnp to list the processes that listen")
    if ended := [pid for pid in pids if not Path(f"/proc/{pid}").is_dir()]:
        found = f"--watch: found {ended[0]}, expected the id of a running process"
        raise UsageError(found, hint="run ss -ltnp to list the processes that listen")
    left = iter(pids)
    return [replace(side, pids=(int(next(left)),)) if side.kind == "url" else side for side in sides]


def check_out_commits(sides: Sequence[Side], build: str | None, tell: Callable[[str], None]) -> list[Side]:
    """Checks out and builds the commit of each side once. Returns the sides with their folders."""
    commits = list(dict.fromkeys(side.commit for side in sides if side.commit))
    if not commits:
        return list(sides)
    with Host() as host:

        def run(command: str, folder: Path, log: Path) -> int:
            tell(f"weir: building in {folder} (log: {log})")
            return run_build_command(host, ["/bin/sh", "-c", command], folder, dict(os.environ), log)

        folders = {commit: str(check_out(Path.cwd(), commit, build, run)) for commit in commits}
    return [replace(side, folder=folders[side.commit]) for side in sides]
