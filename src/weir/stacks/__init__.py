"""Stacks and workloads: reads their files, builds stacks, and checks the responses of stacks."""
