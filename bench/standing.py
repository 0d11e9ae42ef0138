"""A generator that stands ready and makes a load for every line on its standard input, as the trials of a run follow
each other.

    python -m bench.standing URL CONNECTIONS SECONDS CPU [ADDRESS]

Bound to a CPU as a study's generator is: this machine's engine, or with the address of a cluster an agent there. Prints
the ids of its processes but for the engine's, then for every line the answers a second.
"""

import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack

from weir.cluster.agents import start_agents
from weir.cluster.load import SharedLoad
from weir.cluster.ray_cluster import join_cluster
from weir.generators.engine import EngineLoad
from weir.generators.handle import LoadHandle
from weir.model.load import ClosedLoad, LoadPlan, Request


def main() -> None:
    url, connections, seconds, cpu, *address = sys.argv[1:]
    plan = LoadPlan(Request("GET", url), ClosedLoad(int(connections)), float(seconds), cpus=(int(cpu),))
    begin: Callable[[LoadPlan], LoadHandle] = EngineLoad
    processes = [os.getpid()]
    with ExitStack() as stack:
        if address:
            agents = stack.enter_context(start_agents(stack.enter_context(join_cluster(*address)), "load", 1))
            processes.append(agents[0].facts["pid"])

            def begin(plan: LoadPlan) -> LoadHandle:
                return SharedLoad(agents, plan)

        print(json.dumps(processes), flush=True)
        for _ in sys.stdin:
            with begin(plan) as load:
                print(load.result().summary.throughput_rps, flush=True)


if __name__ == "__main__":
    main()
