"""`weir report`: says again what a run, or a load that was kept, found, from its file alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from weir.cli.load_text import summary_text
from weir.cli.output import print_lines, say, stdout
from weir.model.errors import UsageError
from weir.model.text import printable
from weir.store import RUN_FILE_NAME, RunReader, find_run

REPORT_NAME = "report.html"
COMPARED_THRESHOLD = 0.05
"""From here on a difference between two runs is called worse: as `weir gate` does."""
FORMATS = ("html", "json", "md", "csv", "jmeter", "locust", "hgrm")


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, a run file, or a load that weir load --out kept.")],
    html: Annotated[
        Path | None, typer.Option("--html", help="Where the HTML report goes. Default: beside the run file.", show_default=False)
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the findings as JSON: the same as --format json.")] = False,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Print it in another form, and nothing else: html (the page); json; md (tables); csv (every figure); jmeter (aggregate "
            "report); locust (stats); hgrm (percentiles as HdrHistogram prints them).",
            show_default=False,
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare", metavar="RUN", help="Also say how this run differs from another one of the same stacks.", show_default=False
        ),
    ] = None,
    times: Annotated[bool, typer.Option("--times", help="Print what trials took beside their loads, and nothing else.")] = False,
) -> None:
    """Print the answer of a run or of a load and write its HTML report, from the run file alone.

    Example: weir report runs/sync-vs-async-1
    """
    path = find_run(run)
    if compare is not None and (json_ or format_ is not None or times):
        raise UsageError("--compare: found beside --json, --format or --times, expected alone", hint=f"weir gate {compare} {run} --json")
    if json_ or format_ is not None:
        print(_rendered(path, "json" if format_ is None else format_), end="")
        return
    if times:
        from weir.findings.times import times_of
        from weir.report.times import render_times

        with RunReader(path) as reader:
            stdout.print(render_times(times_of(reader.trials())))
        return
    show(path, html=html or beside(path), compare=None if compare is None else find_run(compare))


def _rendered(path: Path, form: str) -> str:
    """What the run or the load at `path` says, in one of `FORMATS`."""
    if form not in FORMATS:
        raise UsageError(f"--format: found {form!r}, expected one of {', '.join(FORMATS)}", hint="weir report --help")
    # Here and not above: findings take as long to import as all else, and `weir load` does not need it.
    from weir.findings import of_load, of_run
    from weir.report import begin_charts, exports, load_exports, render_html, render_json, render_load_html

    of_samples = {"jmeter": exports.jmeter, "locust": exports.locust, "hgrm": exports.hgrm}
    with RunReader(path) as reader:
        forms: dict[str, Callable[[], str]]
        if reader.info.is_load:
            load = of_load(reader)
            forms = {
                "html": lambda: render_load_html(reader, load),
                "json": lambda: render_json(load) + "\n",
                "md": lambda: load_exports.markdown(load),
                "csv": lambda: load_exports.table(load),
                **{name: lambda: of_samples[form](exports.of_load(reader, load)) for name in of_samples},
            }
        else:
            # Before the findings, which do not wait for them.
            charts = begin_charts(reader) if form == "html" else None
            run = of_run(reader)
            forms = {
                "html": lambda: render_html(reader, run, charts=charts),
                "json": lambda: render_json(run) + "\n",
                "md": lambda: exports.markdown(run),
                "csv": lambda: exports.table(run),
                **{name: lambda: of_samples[form](exports.of_run(reader, run)) for name in of_samples},
            }
        return forms[form]()


def beside(path: Path) -> Path:
    """Where the report of the run file at `path` goes: a run has its folder for itself, loads lie beside one another."""
    return path.with_name(REPORT_NAME) if path.name == RUN_FILE_NAME else path.with_suffix(".html")


def interim_answer(path: Path) -> RenderableType:
    """Returns what the run at `path` answers so far; it may still be written to."""
    from weir.findings import of_run
    from weir.report import render_answer

    with RunReader(path) as reader:
        return render_answer(of_run(reader))


def show(path: Path, *, html: Path, compare: Path | None = None, json: bool = False) -> None:
    """Prints the answer of the run at `path` and writes its report to `html`.

    Args:
        path: a run file.
        html: where the page goes.
        compare: a run file to compare it with.
        json: print the findings of a run as JSON in place of its answer.
    """
    # Here and not above: findings take as long to import as all else, and `weir load` does not need it.
    from weir.findings import gate as gating
    from weir.findings import of_load, of_run
    from weir.report import begin_charts, render_json, render_terminal, write_html, write_load_html

    with RunReader(path) as reader:
        if reader.info.is_load:
            if compare is not None:
                raise UsageError(f"--compare: {path} holds a single load, expected a run of a study")
            load = of_load(reader)
            text = summary_text(load.summary, load.trial.cell.load, load.trial.result.resources, load.plan.get("pipeline", 1))
            try:
                write_load_html(reader, load, html)
            finally:
                print_lines("\n".join(printable(line) for line in text.split("\n")))
        else:
            charts = begin_charts(reader)
            findings = of_run(reader)
            against = None
            if compare is not None:
                with RunReader(compare) as base:
                    against = gating.gate(base, reader, gating.METRICS, COMPARED_THRESHOLD, any_environment=True)
            # The file before the terminal, which may be closed by now; and the answer is printed where there is no space for the file.
            try:
                write_html(reader, findings, html, against, charts=charts)
            finally:
                if json:
                    print(render_json(findings))
                else:
                    stdout.print(render_terminal(findings))
                if against is not None:
                    print("\n".join(printable(line) for line in gating.markdown(against).split("\n")))
    say(f"report: {html.resolve()}")
