"""Computes CPU time, memory, threads and events from the records of `weir-engine observe`."""
