"""Runs loads and studies on the machines of a Ray cluster.

Ray schedules agents, tracks nodes and transports messages. An agent is a Ray actor that starts `weir-engine` on its
node and forwards input and output. Engine, host and observer are the same as on one machine. This package detects lost
machines itself, because Ray's health checks take longer.
"""
