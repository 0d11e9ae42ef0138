"""Runs one study: places it on CPUs, starts and checks its stacks, orders and repeats its trials, and judges them."""
