"""`weir demo`: runs the first study at its quick scale."""

from typing import Annotated

from typer import Option

from weir.cli.run import run


def demo(
    fast: Annotated[
        bool, Option("--fast", help="Measure only the Python stacks and end after the first result, in about a minute.")
    ] = False,
) -> None:
    """Answer a first question on this machine: does an async server beat a sync one on a JSON echo?"""
    run(study="sync-vs-async", scale="quick", out=None, resume_=None, skip_missing=True, fast=fast)
