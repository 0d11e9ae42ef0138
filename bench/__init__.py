"""weir against its peers and against the kernel's floor."""
