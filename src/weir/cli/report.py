"""`weir report`: says again what a run, or a load that was kept, found, from its file alone."""

from pathlib import Path
from typing import Annotated

import typer

from weir.cli.load_text import summary_text
from weir.cli.output import say, stdout
from weir.model.text import printable
from weir.store import RUN_FILE_NAME, RunReader, find_run

REPORT_NAME = "report.html"


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, a run file, or a load that weir load --out kept.")],
    html: Annotated[
        Path | None, typer.Option("--html", help="Where the HTML report goes. Default: beside the run file.", show_default=False)
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    times: Annotated[bool, typer.Option("--times", help="Print what trials took beside their loads, and nothing else.")] = False,
) -> None:
    """Print the answer of a run or of a load and write its HTML report, from the run file alone.

    Example: weir report runs/sync-vs-async-1
    """
    path = find_run(run)
    if json_:
        from weir.findings import of_load, of_run
        from weir.report import render_json

        with RunReader(path) as reader:
            print(render_json(of_load(reader) if reader.info.is_load else of_run(reader)))
        return
    if times:
        from weir.findings.times import times_of
        from weir.report.times import render_times

        with RunReader(path) as reader:
            stdout.print(render_times(times_of(reader.trials())))
        return
    show(path, html=html or beside(path))


def beside(path: Path) -> Path:
    """Where the report of the run file at `path` goes: a run has its folder for itself, loads lie beside one another."""
    return path.with_name(REPORT_NAME) if path.name == RUN_FILE_NAME else path.with_suffix(".html")


def show(path: Path, *, html: Path) -> None:
    """Prints the answer of the run at `path` and writes its report to `html`."""
    # Here and not above: scipy takes most of a second to import, and `weir load` does not need it.
    from weir.findings import of_load, of_run
    from weir.report import render_terminal, write_html, write_load_html

    with RunReader(path) as reader:
        if reader.info.is_load:
            load = of_load(reader)
            text = summary_text(load.summary, load.trial.cell.load, load.trial.result.resources, load.plan.get("pipeline", 1))
            try:
                write_load_html(reader, load, html)
            finally:
                print("\n".join(printable(line) for line in text.split("\n")))
        else:
            findings = of_run(reader)
            # The file before the terminal, which may be closed by now; and the answer is printed where there is no space for the file.
            try:
                write_html(reader, findings, html)
            finally:
                stdout.print(render_terminal(findings))
    say(f"report: {html.resolve()}")
