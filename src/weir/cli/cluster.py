"""`weir cluster`: checks whether the nodes of a Ray cluster can run loads and studies."""

from typing import Annotated, Any

import typer
from typer import Argument

from weir.cli import options
from weir.cli.output import make_table, print_json, say, stdout
from weir.model.errors import ExitCode

app = typer.Typer(help="Check whether a Ray cluster can run loads and studies.", no_args_is_help=True)


@app.command()
def check(
    address: Annotated[
        str, Argument(metavar="ADDRESS", help="HOST:PORT of the cluster's head node. auto: this machine's cluster.")
    ] = "auto",
    json_: options.Json = False,
) -> None:
    """Show a cluster's nodes, roles and clock offsets. Exit with 3 if a problem prevents loads or studies.

    Example: weir cluster check 10.0.0.1:6379
    """
    from weir.cluster.diagnostics import check_cluster
    from weir.cluster.ray_cluster import join_cluster

    with join_cluster(address) as cluster:
        checked = check_cluster(cluster)
    if json_:
        print_json(_to_json(checked))
    else:
        _print(checked)
    for sentence in checked.missing:
        say(f"weir: {sentence}")
    if checked.missing:
        raise typer.Exit(ExitCode.TARGET)


def _to_json(checked: Any) -> dict[str, Any]:
    nodes = [
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
    ]
    pairs = [
        {
            "node": pair.node,
            "other": pair.other,
            "round_trip_us": pair.clock.round_trip_ns / 1e3,
            "clock_offset_us": pair.clock.offset_ns / 1e3,
            "clock_error_us": pair.clock.error_ns / 1e3,
        }
        for pair in checked.pairs
    ]
    return {"nodes": nodes, "pairs": pairs, "missing": list(checked.missing)}


def _print(checked: Any) -> None:
    columns = ("node", "for", "CPUs", "memory", "engine", "weir", "kernel", "architecture", "Python", "Ray")
    nodes = make_table(*columns, no_wrap=("node",))
    for one in checked.nodes:
        facts, roles = one.facts, ", ".join(one.roles) or "anything"
        # The check reads weir's version only on nodes that need weir.
        programs = (one.engine, one.weir or "-", facts["kernel"], facts["architecture"], facts["python"], facts["ray"])
        memory = f"{facts['memory_bytes'] / 2**30:.1f} GiB"
        nodes.add_row(one.node.name, roles, str(len(facts["cpus"])), memory, *programs)
    stdout.print(nodes)
    if not checked.pairs:
        return
    headings = ("from", "to", "round trip", "clock ahead by")
    pairs = make_table(*headings, no_wrap=headings)
    for pair in checked.pairs:
        clock = pair.clock
        offset = f"{clock.offset_ns / 1e3:+,.0f} ± {clock.error_ns / 1e3:,.0f} us"
        pairs.add_row(pair.node, pair.other, f"{clock.round_trip_ns / 1e3:,.0f} us", offset)
    stdout.print()
    stdout.print(pairs)
