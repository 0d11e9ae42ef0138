"""Turns the records of `weir-engine`'s observer into CPU time, memory, threads and events."""
