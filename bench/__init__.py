"""Compares weir with other load generators and with the smallest client that the kernel allows."""
