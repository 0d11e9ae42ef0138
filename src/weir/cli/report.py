"""`weir report`: says again what a run found, from its file alone."""

from pathlib import Path
from typing import Annotated

import typer

from weir.cli.output import say, stdout
from weir.store import RunReader, find_run

REPORT_NAME = "report.html"


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder or run file.")],
    html: Annotated[
        Path | None, typer.Option("--html", help="Where the HTML report goes. Default: beside the run file.", show_default=False)
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Print a run's answer and write its HTML report, from the run file alone.

    Example: weir report runs/sync-vs-async-1
    """
    path = find_run(run)
    if json_:
        from weir.findings import of_run
        from weir.report import render_json

        with RunReader(path) as reader:
            print(render_json(of_run(reader)))
        return
    show(path, html=html or path.with_name(REPORT_NAME))


def show(path: Path, *, html: Path) -> None:
    """Prints the answer of the run at `path` and writes its report to `html`."""
    # Here and not above: scipy takes most of a second to import, and `weir load` does not need it.
    from weir.findings import of_run
    from weir.report import render_terminal, write_html

    with RunReader(path) as reader:
        findings = of_run(reader)
        stdout.print(render_terminal(findings))
        write_html(reader, findings, html)
    say(f"report: {html.resolve()}")
