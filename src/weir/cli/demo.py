"""`weir demo`: the first study, at its quick scale."""

from typing import Annotated

import typer

from weir.cli.run import run


def demo(
    fast: Annotated[bool, typer.Option("--fast", help="End after the first answer: the stacks in Python, a minute of measuring.")] = False,
) -> None:
    """Answer a first question on this machine: does an async server beat a sync one on a JSON echo?"""
    run(study="sync-vs-async", scale="quick", out=None, resume_=None, skip_missing=True, fast=fast)
