"""Closed loops on nginx `return 200`: weir, weir on epoll, the other generators, and the bare loops for comparison."""

from functools import partial

from bench.contest import Contest, contest_table, hold_contest, peer_round, weir_round
from bench.peers import AB, BARE, BODY, GCANNON, OTHERS, WRK, Job, Peer
from bench.result import Bar, Found
from bench.setting import Setting
from weir.model.load import ClosedLoad, LoadPlan, Request, Tls

CONNECTIONS = (16, 64, 256, 1_024, 10_000)
MANY = 10_000
CPU_JOB = Job("GET", 64)
# wrk opens connections within the measured time, weir before it. So a load with many connections gets fewer and longer rounds.
# Entries: minimum connections, factor for the seconds, maximum rounds.
LONGER = ((MANY, 4, 11), (1_024, 2, 13))
BACK_ENDS = {"weir": "auto", "weir on epoll": "epoll"}
ASLEEP = "weir, asleep when idle"
"""weir without polling, which shows the CPU cost of a response. On its own CPU weir polls before it sleeps, with CPU
time that no other process needs."""
# Required weir ÷ wrk, by the number of connections.
BARS = {16: 1.05, 64: 1.10, 256: 1.13, 1_024: 1.17, 10_000: 1.3}
BAR_EPOLL = 1.03
BAR_CLOSE = 1.0
BAR_TLS = 1.0
# User CPU per request, at most the first where wrk takes the second: machines differ by half in both.
BAR_USER_CPU_US, BAR_WRK_CPU_US = 0.4, 0.7
BAR_RSS_BYTES = 30_000_000


def measure_throughput(setting: Setting) -> Found:
    """Measures GET and POST at each number of connections, with weir, wrk, gcannon and the bare loops."""
    jobs = [Job(kind, count) for kind in ("GET", "POST") for count in setting.connections]
    notes: list[str] = []
    for count in setting.connections:
        length = length_at(count, setting.rounds, setting.seconds)
        if length != (setting.rounds, setting.seconds):
            notes.append(
                f"{count:,} connections: {length[0]} rounds of {length[1]} s, since wrk opens them within its time"
            )
    contests = [_contest(setting, job, [WRK, GCANNON, *BARE], notes) for job in jobs]
    bars = []
    for job, contest in zip(jobs, contests, strict=True):
        bars.append(at_least(contest, "weir", WRK, BARS.get(job.connections, 1.0)))
        bars.append(at_least(contest, "weir on epoll", WRK, BAR_EPOLL))
        if job == CPU_JOB:
            wrk_us = contest.cpu_user_us(WRK.name) if WRK.name in contest.rounds else None
            bars.append(user_cpu_bar(job.label, contest.cpu_user_us(ASLEEP), contest.cpu_user_us("weir"), wrk_us))
        if job.connections == MANY:
            memory = contest.memory_bytes("weir") or 0
            text = f"{job.label}: memory at most {BAR_RSS_BYTES / 1e6:.0f} MB"
            bars.append(Bar(text, f"{memory / 1e6:.1f} MB", memory <= BAR_RSS_BYTES))
    return _found("Throughput: closed loop, nginx `return 200`", contests, bars, notes)


def measure_close(setting: Setting) -> Found:
    """Measures requests that each open a connection."""
    notes: list[str] = []
    contest = _contest(setting, Job("close", 64), [WRK, AB], notes)
    bars = [at_least(contest, "weir", peer, BAR_CLOSE) for peer in (WRK, AB)]
    return _found("Throughput without keep-alive: closed loop, nginx `return 200`", [contest], bars, notes)


def measure_tls(setting: Setting) -> Found:
    """Measures TLS 1.3 with AES-128-GCM for all generators. No generator checks the certificate."""
    notes: list[str] = []
    contest = _contest(setting, Job("tls", 64), [WRK], notes)
    bars = [at_least(contest, "weir", WRK, BAR_TLS)]
    return _found("Throughput over TLS 1.3 (AES-128-GCM): closed loop, nginx `return 200`", [contest], bars, notes)


def measure_peers(setting: Setting) -> Found:
    """Measures all generators at 64 connections."""
    notes: list[str] = []
    contests = [_contest(setting, Job(kind, 64), [WRK, *OTHERS], notes) for kind in ("GET", "POST")]
    return _found(
        "Throughput beside the others: closed loop, nginx `return 200`", contests, [], list(dict.fromkeys(notes))
    )


def _contest(setting: Setting, job: Job, peers: list[Peer], notes: list[str]) -> Contest:
    setting = setting.with_length(*length_at(job.connections, setting.rounds, setting.seconds))
    url = f"https://{setting.nginx.tls_address}/" if job.kind == "tls" else setting.nginx.url
    plan = weir_plan(job, url, setting.seconds)

    generators = {name: partial(weir_round, setting, plan, back_end) for name, back_end in BACK_ENDS.items()}
    if job == CPU_JOB:
        generators[ASLEEP] = partial(weir_round, setting, plan, "auto", owns_cpu=False)
    for peer in peers:
        if peer.binary is None:
            notes.append(peer.missing)
        elif peer.command(job, url, setting.seconds, setting.folder) is not None:
            generators[peer.name] = partial(peer_round, setting, peer, job, url)
    return hold_contest(setting, job.label, generators, notes, BACK_ENDS)


def length_at(connections: int, rounds: int, seconds: int) -> tuple[int, int]:
    """Returns the number of rounds and their seconds at `connections`; few connections have `rounds` of `seconds`."""
    for least, times, most_rounds in LONGER:
        if connections >= least:
            return min(rounds, most_rounds), seconds * times
    return rounds, seconds


def weir_plan(job: Job, url: str, duration_s: int) -> LoadPlan:
    """Returns weir's plan for a job."""
    request = Request("GET", url)
    if job.kind == "POST":
        request = Request("POST", url, (("Content-Type", "application/json"),), BODY)
    return LoadPlan(
        request,
        ClosedLoad(job.connections),
        duration_s,
        keep_alive=job.kind != "close",
        tls=Tls(insecure=True) if job.kind == "tls" else None,
    )


def user_cpu_bar(label: str, asleep_us: float, weir_us: float, wrk_us: float | None) -> Bar:
    """Returns the bar on user CPU per response, scaled to the machine on which the bar was set."""
    text = (
        f"{label}: user CPU at most {BAR_USER_CPU_US:g} µs/request where wrk takes {BAR_WRK_CPU_US:g}, "
        "without looking for answers that are not there"
    )
    if wrk_us is None:
        return Bar(text, "", None)
    scaled_us = asleep_us * BAR_WRK_CPU_US / wrk_us
    found = f"{scaled_us:.2f} µs there: {asleep_us:.2f} µs where wrk takes {wrk_us:.2f}; {weir_us:.2f} µs with looking"
    return Bar(text, found, scaled_us <= BAR_USER_CPU_US)


def at_least(contest: Contest, ours: str, peer: Peer, bar: float) -> Bar:
    text = f"{contest.label}{'' if ours == 'weir' else ', on epoll'}: at least {bar:g} × {peer.name}"
    ratio = contest.ratio(ours, peer.name)
    if ratio is None:
        return Bar(text, "", None)
    reached = ratio.median >= bar
    return Bar(text, ratio.text(3) + ("" if reached else _limit(contest, ours, peer)), reached)


def _limit(contest: Contest, ours: str, peer: Peer) -> str:
    """Returns a remark with the bare loops' ratios if the server limits the throughput, else an empty string.

    A generator that fills the server gets 1 / (1 - idle fraction of the server under `peer`) times the throughput of
    `peer`. More is possible only if a response becomes cheaper for the server.
    """
    free = contest.free(ours)
    _, server_idle = contest.idle(ours)
    _, idle_under_peer = contest.idle(peer.name)
    if free <= server_idle:
        return ""
    least = {other.name: contest.ratio(other.name, peer.name) for other in (GCANNON, *BARE)}
    ratios = ", ".join(f"{name} {ratio.median:.3f}" for name, ratio in least.items() if ratio is not None)
    beside = f"; in the same rounds {ratios}" if ratios else ""
    idle = f"{server_idle:.0%} idle ({idle_under_peer:.0%} under {peer.name}), weir's {free:.0%}"
    return f"; the server is the limit, its CPU {idle}{beside}"


def _found(title: str, contests: list[Contest], bars: list[Bar], notes: list[str]) -> Found:
    return Found(
        title,
        contest_table(contests),
        bars,
        list(dict.fromkeys(notes)),
        {contest.label: contest.measured() for contest in contests},
    )
