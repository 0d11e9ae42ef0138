"""Studies: TOML files that define the compared systems, the load, and the number and order of trials."""
