"""The generated pages of docs/reference, each a function from the types and tables in the code that it describes to its text.

`weir.cli.reference` writes them: `make reference`. Nothing here is needed to measure or to report.
"""
