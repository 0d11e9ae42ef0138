"""A question as a TOML file: what is compared, under which load, how often and in which order."""
