"""`weir findings`: everything that a run says, one sentence a finding, or as JSON for programs."""

from pathlib import Path
from typing import Annotated

import typer

from weir.cli.output import stdout
from weir.model.errors import UsageError
from weir.model.text import printable
from weir.store import RunReader, find_run


def findings(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder or a run file.", show_default=False)],
    json_: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Print every finding of a run in a sentence, with what would change it.

    Example: weir findings runs/sync-vs-async-1 --json
    """
    # Here and not above: findings take as long to import as all else, and a missing file does not need it.
    from weir.findings import of_run
    from weir.findings.all import told
    from weir.report import render_json

    path = find_run(run)
    with RunReader(path) as reader:
        if reader.info.is_load:
            raise UsageError(f"{path}: found a single load, expected a run of a study", hint=f"weir report {path}")
        found = of_run(reader)
    if json_:
        print(render_json(found))
        return
    for heading, sentences in told(found):
        stdout.print(heading, style="bold", highlight=False, markup=False)
        for sentence, rest in sentences:
            stdout.print(printable(f"- {sentence}"), highlight=False, markup=False)
            if rest:
                stdout.print(printable(f"  {rest}"), highlight=False, markup=False, style="dim")
