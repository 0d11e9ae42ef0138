"""`weir demo`: runs the study sync-vs-async at the scale quick."""

from typing import Annotated

from typer import Option

from weir.cli.run import run


def demo(
    fast: Annotated[
        bool, Option("--fast", help="Measure only the Python stacks, and end after the first result (about a minute).")
    ] = False,
) -> None:
    """Run a first study on this machine: does an async server beat a sync server on a JSON echo?"""
    run(study="sync-vs-async", scale="quick", out=None, resume_=None, skip_missing=True, fast=fast)
