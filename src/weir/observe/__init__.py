"""Reads what `weir-engine`'s observer says: samples into figures of CPU, memory and threads."""
