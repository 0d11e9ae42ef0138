"""The same load and the same lab over many machines, on a Ray cluster.

Scheduling, membership and transport are Ray's. An agent is an actor that starts `weir-engine` on its node and forwards lines: the engine,
the host and the observer are those of one machine. A machine that is gone is noticed here, since Ray's own health checks take longer.
"""
