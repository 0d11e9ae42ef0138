"""Loads and studies over many machines, on a Ray cluster.

Ray does scheduling, membership and transport. An agent is an actor that starts `weir-engine` on its node and forwards
lines: engine, host and observer are the same as on one machine. This room detects lost machines itself, since Ray's
health checks take longer.
"""
