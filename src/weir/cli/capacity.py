"""`weir capacity`: finds the highest rate that meets an objective, or the knee of a server's throughput."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from weir.cli import options
from weir.cli.output import print_text, say, teller, write_json
from weir.load_spec import FLAG_NAMES, LoadSpec, read_flags
from weir.model.errors import ExitCode, UsageError
from weir.objective import Condition, parse_objective
from weir.parsing import parse_duration, parse_think_time, write_duration
from weir.stacks.manifest import read_stack

if TYPE_CHECKING:
    from weir.findings.capacity_estimate import Capacity, KneeFinding
    from weir.lab.capacity_probe import SearchSettings, Target
    from weir.stats import Attempt, Goal

_KNEE_LOAD_S = 5.0
_SEED = 1
_OBJECTIVE = "a percentile and a time, such as 'p99<=50ms'"


@options.with_load_settings("timeout_s", "method", "headers", "body", "tls_insecure")
def capacity(
    target: Annotated[str, Argument(metavar="URL|STACK", help="URL of a server, or a stack as ID or ID[VARIANT].")],
    workload: Annotated[str | None, Argument(metavar="[WORKLOAD]", help="With a stack: workload to measure.")] = None,
    objective_: options.Objective = None,
    knee: Annotated[
        bool,
        Option("--knee", help="Find the knee: the smallest number of users with 95 % of the peak throughput."),
    ] = False,
    think: Annotated[
        str | None,
        Option(
            "--think",
            help="Also report how many users with this pause reach the rate. Examples: 10s, uniform:1s..3s, exp:2s.",
        ),
    ] = None,
    searches: Annotated[int, Option("--searches", min=1, help="Number of searches. An interval needs at least 5.")] = 5,
    connections: Annotated[
        int, Option("-c", "--connections", min=1, help="Maximum number of connections, or of users with --knee.")
    ] = 256,
    shortest: Annotated[str, Option("--min-duration", help="Length of the first, rough loads of a search.")] = "5s",
    longest: Annotated[str, Option("--max-duration", help="Length of the last, precise loads of a search.")] = "30s",
    width: Annotated[
        float, Option("--width", help="End a search when the lower and upper bounds differ by at most this share.")
    ] = 0.02,
    warmup: Annotated[str, Option("--warmup", help="With a stack: length of the warm-up after each start.")] = "5s",
    poisson: Annotated[
        bool, Option("--poisson", help="Send requests at independent random times (Poisson). Default: evenly spaced.")
    ] = False,
    *,
    given: dict[str, Any],
    json_: options.JsonFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Search for the highest rate that meets an objective, and report the rate with a confidence interval.

    weir restarts a stack before each search, but never restarts the server of a URL. weir sends requests at the rate
    without waiting for responses. So a slow server does not reduce the load.

    Example: weir capacity http://127.0.0.1:8000/ --objective 'p99<=50ms' --think 10s
    """
    tell = teller(quiet=quiet)
    condition = _read_condition(objective_, knee=knee)
    is_url = "://" in target or target.startswith("unix:")
    spec = read_flags((target,) if is_url else (), given)
    for name in () if is_url else ("method", "headers", "body", "tls_insecure"):
        if given[name]:
            problem = "found together with a stack, expected a URL: the stack's workload defines the request"
            raise UsageError(f"{FLAG_NAMES[name]}: {problem}")
    if condition is not None and condition.limit > spec.timeout_s * 1e6:
        found_s = write_duration(spec.timeout_s)
        raise UsageError(f"--timeout: found {found_s}, expected at least the limit of --objective {condition.text}")
    goal = _read_goal(condition, shortest, longest, width)
    think_s = None if think is None else options.read_flag("--think", parse_think_time, think).mean_s
    from weir.lab.capacity_probe import SearchSettings

    with _open_target(target, workload, spec, connections, warmup, tell) as searched:
        if condition is None:
            found: Capacity | KneeFinding = _find_knee(searched, searches, connections, tell)
        else:
            settings = SearchSettings(condition, goal, connections, "poisson" if poisson else "constant")
            found = _find_capacity(searched, searches, settings, think_s, tell)
    for reason in found.reasons:
        say(f"weir: suspect: {reason}")
    if json_ != "-":
        print_text(found.sentence)
        print_text(f"  {found.would_change}", "dim")
    if json_ is not None:
        write_json(asdict(found), json_)
    if not found.is_known:
        raise typer.Exit(ExitCode.NOT_VALID)


def _read_condition(text: str | None, *, knee: bool) -> Condition | None:
    if knee:
        if text is not None:
            raise UsageError("--knee: found together with --objective, expected only one", hint="weir capacity --help")
        return None
    if text is None:
        raise UsageError(f"--objective: missing, expected {_OBJECTIVE}, or the flag --knee")
    condition = parse_objective(text)
    if condition.quantile is None or condition.quantile >= 1:
        raise UsageError(f"--objective: found {text!r}, expected {_OBJECTIVE}")
    return condition


def _read_goal(condition: Condition | None, shortest: str, longest: str, width: float) -> "Goal":
    if not 0.001 <= width <= 0.5:
        raise UsageError(f"--width: found {width:g}, expected a share from 0.001 to 0.5, such as 0.02")
    shortest_s = options.read_flag("--min-duration", parse_duration, shortest)
    longest_s = options.read_flag("--max-duration", parse_duration, longest)
    if longest_s < shortest_s:
        raise UsageError(f"--max-duration: found {longest}, expected at least --min-duration {shortest}")
    from weir.stats import Goal

    return Goal(1 - ((condition and condition.quantile) or 0.0), shortest_s, longest_s, width)


def _open_target(
    target: str, workload: str | None, spec: LoadSpec, users: int, warmup: str, tell: Callable[[str], None]
) -> AbstractContextManager["Target"]:
    """Returns the target: a running server, or a stack that weir starts and then warms up with `users` users."""
    from weir.lab.capacity_probe import external_target, open_stack_target

    if spec.urls:
        if workload is not None:
            problem = f"found {workload!r} together with a URL, expected no workload: the URL defines the request"
            raise UsageError(f"WORKLOAD: {problem}")
        return nullcontext(external_target(replace(spec, connections=users, duration_s=1.0).to_plan()))
    if workload is None:
        raise UsageError(f"WORKLOAD: missing, expected a workload that {target} serves", hint="weir stacks list")
    return open_stack_target(
        read_stack(target),
        workload,
        warmup_s=options.read_flag("--warmup", parse_duration, warmup),
        warmup_users=users,
        timeout_s=spec.timeout_s,
        seed=_SEED,
        on_step=lambda step: tell(f"weir: {step}"),
    )


def _count_searches(searches: int, tell: Callable[[str], None]) -> Iterator[None]:
    for number in range(1, searches + 1):
        tell(f"weir: search {number} of {searches}")
        yield


def _find_knee(target: "Target", searches: int, most_users: int, tell: Callable[[str], None]) -> "KneeFinding":
    from weir.findings.capacity_estimate import combine_knee_searches
    from weir.findings.formatting import counted
    from weir.lab.capacity_probe import find_knee

    def on_attempt(users: int, rps: float) -> None:
        tell(f"      {counted(users, 'user')}: {rps:,.1f} req/s")

    knees = [
        find_knee(target, most_users=most_users, length_s=_KNEE_LOAD_S, on_attempt=on_attempt)
        for _ in _count_searches(searches, tell)
    ]
    return combine_knee_searches(target.title, knees, is_fresh=target.is_fresh)


def _find_capacity(
    target: "Target", searches: int, settings: "SearchSettings", think_s: float | None, tell: Callable[[str], None]
) -> "Capacity":
    from weir.findings.capacity_estimate import Answers, combine_capacity_searches
    from weir.lab.capacity_probe import find_capacity

    def on_attempt(attempt: "Attempt") -> None:
        missed = f"{attempt.missed_share:.2%} of {attempt.intended:,} requests missed the objective"
        tell(f"      {attempt.load:,.1f} req/s for {attempt.duration_s:.1f} s: {missed}")

    found = [find_capacity(target, settings, on_attempt) for _ in _count_searches(searches, tell)]
    return combine_capacity_searches(
        target.title,
        settings.condition.text,
        settings.goal.missed_share,
        [one.search for one in found],
        [Answers(one.histogram, one.mean_s) for one in found if one.histogram is not None and one.mean_s is not None],
        is_fresh=target.is_fresh,
        think_s=think_s,
        reasons=list(dict.fromkeys(reason for one in found for reason in one.reasons)),
    )
