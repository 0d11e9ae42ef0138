"""`weir capacity`: how much a server carries within an objective, as a rate and as users; and where more users gain nothing."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from weir.cli.output import QUIET_OPTION, say, stdout, teller, write_json
from weir.cli.transport import TlsFlags, tls
from weir.cli.values import request
from weir.load_values import duration_s, think_time
from weir.model.errors import ExitCode, UsageError
from weir.model.load import ClosedLoad, LoadPlan
from weir.model.text import printable
from weir.objective import Condition, objective
from weir.stacks.manifest import read_stack

if TYPE_CHECKING:
    from weir.findings import Capacity, KneeFinding
    from weir.lab.capacity import Target, Wanted
    from weir.stats import Attempt

_KNEE_LOAD_S = 5.0
_SEED = 1


def capacity(
    target: Annotated[str, typer.Argument(metavar="URL|STACK", help="A server's URL, or a stack as ID or ID[VARIANT].")],
    workload: Annotated[
        str | None, typer.Argument(metavar="[WORKLOAD]", help="With a stack: what is asked of it.", show_default=False)
    ] = None,
    objective_: Annotated[
        str | None, typer.Option("--objective", help="What must hold: a percentile and a time, as 'p99<=50ms'.", show_default=False)
    ] = None,
    knee: Annotated[
        bool, typer.Option("--knee", help="Instead: how many users who ask again at once reach nearly the most that any number reaches.")
    ] = False,
    think: Annotated[
        str | None,
        typer.Option("--think", help="Say it as users, who pause so long: 10s, uniform:1s..3s or exp:2s.", show_default=False),
    ] = None,
    searches: Annotated[int, typer.Option("--searches", min=1, help="How many; five give an interval.")] = 5,
    connections: Annotated[
        int, typer.Option("-c", "--connections", min=1, help="The most connections at a time; with --knee the most users.")
    ] = 256,
    poisson: Annotated[bool, typer.Option("--poisson", help="Arrivals independent of one another, not at even distances.")] = False,
    shortest: Annotated[str, typer.Option("--shortest", help="The length of the loads that find the neighbourhood.")] = "5s",
    longest: Annotated[str, typer.Option("--longest", help="The length of the loads that decide.")] = "30s",
    width: Annotated[float, typer.Option("--width", help="How far apart the two bounds may be in the end, as a share.")] = 0.02,
    prime: Annotated[str, typer.Option("--prime", help="With a stack: how long it is warmed up after each start.")] = "5s",
    timeout: Annotated[str, typer.Option("--timeout", help="How long an answer may take at all.")] = "2s",
    method: Annotated[str | None, typer.Option("-m", "--method", help="HTTP method. Default: GET, or POST with a body.")] = None,
    headers: Annotated[list[str] | None, typer.Option("-H", "--header", help="'Name: value'; may be repeated.")] = None,
    body: Annotated[str | None, typer.Option("-b", "--body", help="The request's body, or @FILE.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="TLS: trust any certificate.")] = False,
    json_: Annotated[str | None, typer.Option("--json", help="Write the result as JSON to this file, - for standard output.")] = None,
    quiet: Annotated[bool, QUIET_OPTION] = False,
) -> None:
    """Search for the highest rate at which an objective holds, several times, and say it with its interval.

    A stack is started anew for each search; a server that runs already is asked as it is. Its arrivals wait for
    nobody: a server cannot meet the objective by slowing its clients down.

    Example: weir capacity http://127.0.0.1:8000/ --objective 'p99<=50ms' --think 10s
    """
    tell = teller(quiet=quiet)
    condition = _condition(objective_, knee=knee)
    timeout_s = duration_s(timeout, "--timeout")
    if condition is not None and condition.limit > timeout_s * 1e6:
        raise UsageError(f"--timeout: found {timeout}, expected at least the limit of --objective {condition.text}")
    if not 0.001 <= width <= 0.5:
        raise UsageError(f"--width: found {width:g}, expected a share from 0.001 to 0.5, such as 0.02")
    shortest_s, longest_s = duration_s(shortest, "--shortest"), duration_s(longest, "--longest")
    if longest_s < shortest_s:
        raise UsageError(f"--longest: found {longest}, expected at least --shortest {shortest}")
    think_s = None if think is None else think_time(think).mean_s
    # Here and not above: findings take as long to import as all else, and a wrong flag does not need it.
    from weir.lab.blocks import Progress
    from weir.lab.capacity import Server, Wanted, started_stack
    from weir.stats import Goal

    opened: AbstractContextManager[Target]
    if "://" in target or target.startswith("unix:"):
        if workload is not None:
            raise UsageError(f"WORKLOAD: found {workload!r} beside a URL, expected none: a server that runs already is asked for its URL")
        plan = LoadPlan(
            request=request(target, method, headers or [], body),
            load=ClosedLoad(connections),
            duration_s=1.0,
            timeout_s=timeout_s,
            tls=tls([target], TlsFlags(insecure=insecure)),
        )
        opened = nullcontext(Server(plan))
    else:
        if workload is None:
            raise UsageError(f"WORKLOAD: missing; expected one that {target} serves", hint="weir stacks list")
        for flag, given in (("-m/--method", method), ("-H/--header", headers), ("-b/--body", body), ("--insecure", insecure)):
            if given:
                raise UsageError(f"{flag}: found beside a stack, expected only beside a URL: the workload says what is asked")
        opened = started_stack(
            read_stack(target),
            workload,
            prime_s=duration_s(prime, "--prime"),
            prime_users=connections,
            timeout_s=timeout_s,
            seed=_SEED,
            progress=Progress(on_step=lambda step: tell(f"weir: {step}")),
        )
    found: Capacity | KneeFinding
    with opened as searched:
        if condition is None:
            found = _knee(searched, searches, connections, tell)
        else:
            share = 1 - (condition.quantile or 0.0)
            wanted = Wanted(condition, Goal(share, shortest_s, longest_s, width), connections, "poisson" if poisson else "constant")
            found = _capacity(searched, searches, wanted, think_s, tell)
    for reason in found.reasons:
        say(f"weir: suspect: {reason}")
    if json_ != "-":
        stdout.print(printable(found.sentence), highlight=False, markup=False)
        stdout.print(printable(f"  {found.would_change}"), highlight=False, markup=False, style="dim")
    if json_ is not None:
        write_json(found.to_json(), json_)
    if not found.is_known:
        raise typer.Exit(ExitCode.NOT_VALID)


def _knee(target: "Target", searches: int, most_users: int, tell: Callable[[str], None]) -> "KneeFinding":
    from weir.findings import knee_of
    from weir.lab.capacity import find_knee

    knees = []
    for number in range(searches):
        tell(f"weir: search {number + 1} of {searches}")
        knees.append(find_knee(target, most_users=most_users, length_s=_KNEE_LOAD_S, tell=lambda users, rps: tell(_users_line(users, rps))))
    return knee_of(target.title, knees, is_fresh=target.is_fresh)


def _capacity(target: "Target", searches: int, wanted: "Wanted", think_s: float | None, tell: Callable[[str], None]) -> "Capacity":
    from weir.findings import Answers, capacity_of
    from weir.lab.capacity import search

    found = []
    for number in range(searches):
        tell(f"weir: search {number + 1} of {searches}")
        found.append(search(target, wanted, lambda attempt: tell(_attempt_line(attempt))))
    return capacity_of(
        target.title,
        wanted.condition.text,
        wanted.goal.missed_share,
        [one.search for one in found],
        [Answers(one.histogram, one.mean_s) for one in found if one.histogram is not None and one.mean_s is not None],
        is_fresh=target.is_fresh,
        think_s=think_s,
        reasons=list(dict.fromkeys(reason for one in found for reason in one.reasons)),
    )


def _condition(text: str | None, *, knee: bool) -> Condition | None:
    if knee:
        if text is not None:
            raise UsageError("--knee: found beside --objective, expected one of them", hint="weir capacity --help")
        return None
    if text is None:
        raise UsageError("--objective: missing; expected a percentile and a time, such as 'p99<=50ms'; or --knee")
    condition = objective(text)
    if condition.quantile is None or condition.quantile >= 1:
        raise UsageError(f"--objective: found {text!r}, expected a percentile and a time, such as 'p99<=50ms'")
    return condition


def _attempt_line(attempt: "Attempt") -> str:
    return f"      {attempt.load:,.1f} req/s for {attempt.duration_s:.1f} s: {attempt.missed_share:.2%} of {attempt.intended:,} missed it"


def _users_line(users: int, throughput_rps: float) -> str:
    from weir.findings.words import counted

    return f"      {counted(users, 'user')}: {throughput_rps:,.1f} req/s"
