"""Reads the files of stacks and workloads, builds stacks, and checks the stacks' responses."""
