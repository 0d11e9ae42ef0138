"""A process that stands ready and runs one load for each line on standard input, like the trials of a run.

    python -m bench.standing URL CONNECTIONS SECONDS CPU [ADDRESS]

The load runs on CPU with this machine's engine, or with an agent of the cluster at ADDRESS. First the process prints
its process ids except the engine's; then, for every line, the responses per second.
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
