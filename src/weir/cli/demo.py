"""`weir demo`: the first study, at its quick scale."""

from weir.cli.run import run


def demo() -> None:
    """Answer a first question on this machine: does an async server beat a sync one on a JSON echo?"""
    run(study="sync-vs-async", scale="quick", out=None, resume_=None, skip_missing=True)
