"""`weir cluster`: what a Ray cluster has for loads and studies."""

from typing import Annotated, Any

import typer
from rich.table import Table

from weir.cli.output import print_json, say, stdout
from weir.model.errors import ExitCode

app = typer.Typer(help="Look at a Ray cluster.", no_args_is_help=True)


@app.callback()
def _cluster() -> None:
    """Look at a Ray cluster."""


@app.command()
def check(
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="HOST:PORT of its head; auto: that of the node on this machine.")
    ] = "auto",
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the nodes of a cluster, what they are for, and how far apart their clocks are. Exits with 3 when something is missing.

    Example: weir cluster check 10.0.0.1:6379
    """
    # Ray takes most of a second to load.
    from weir.cluster.check import check as check_cluster
    from weir.cluster.ray_cluster import joined

    with joined(address) as cluster:
        checked = check_cluster(cluster)
    if json_:
        print_json(_described(checked))
    else:
        _print(checked)
    for sentence in checked.missing:
        say(f"weir: {sentence}")
    if checked.missing:
        raise typer.Exit(ExitCode.TARGET)


def _described(checked: Any) -> dict[str, Any]:
    return {
        "nodes": [
            {
                "name": one.node.name,
                "address": one.node.address,
                "roles": list(one.roles),
                "resources": one.node.resources,
                **one.facts,
                "engine": one.engine,
                **({"weir": one.weir} if one.needs_weir else {}),
            }
            for one in checked.nodes
        ],
        "pairs": [
            {
                "node": pair.node,
                "other": pair.other,
                "round_trip_us": pair.clock.round_trip_ns / 1e3,
                "clock_offset_us": pair.clock.offset_ns / 1e3,
                "clock_error_us": pair.clock.error_ns / 1e3,
            }
            for pair in checked.pairs
        ],
        "missing": list(checked.missing),
    }


def _print(checked: Any) -> None:
    nodes = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("node", "for", "CPUs", "memory", "engine", "weir", "kernel", "architecture", "Python", "Ray"):
        nodes.add_column(column, no_wrap=column == "node")
    for one in checked.nodes:
        facts = one.facts
        memory = f"{facts['memory_bytes'] / 2**30:.1f} GiB"
        roles = ", ".join(one.roles) or "anything"
        # What is not needed there is not asked for.
        programs = (one.engine, one.weir or "-")
        node = (facts["kernel"], facts["architecture"], facts["python"], facts["ray"])
        nodes.add_row(one.node.name, roles, str(len(facts["cpus"])), memory, *programs, *node)
    stdout.print(nodes)
    if not checked.pairs:
        return
    pairs = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("from", "to", "round trip", "clock ahead by"):
        pairs.add_column(column, no_wrap=True)
    for pair in checked.pairs:
        round_trip_us, offset_us, error_us = (ns / 1e3 for ns in (pair.clock.round_trip_ns, pair.clock.offset_ns, pair.clock.error_ns))
        pairs.add_row(pair.node, pair.other, f"{round_trip_us:,.0f} us", f"{offset_us:+,.0f} ± {error_us:,.0f} us")
    stdout.print()
    stdout.print(pairs)
