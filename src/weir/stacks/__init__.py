"""Stacks and the workloads that they serve: what their files say, how a stack is built, and how its answers are
checked."""
