"""Runs one study: assigns CPUs, starts and checks stacks, orders and repeats trials, and judges each trial."""
