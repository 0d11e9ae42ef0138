"""`weir report`: prints the result of a run or of a recorded load. The command reads only the run file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from rich.console import RenderableType
from typer import Argument, Option

from weir.cli.load_summary import summary_text
from weir.cli.output import print_lines, say, stdout
from weir.model.errors import UsageError
from weir.store import RUN_FILE_NAME, RunReader, find_run

REPORT_NAME = "report.html"
_COMPARED_THRESHOLD = 0.05
"""Smallest relative change between two runs that counts as worse. `weir gate` has the same default."""
FORMATS = ("html", "json", "md", "csv", "jmeter", "locust", "hgrm")


def report(
    run: Annotated[Path, Argument(metavar="RUN", help="Run folder, run file, or the file from weir load --out.")],
    html: Annotated[
        Path | None, Option("--html", help="Path of the HTML report. Default: next to the run file.")
    ] = None,
    json_: Annotated[bool, Option("--json", help="Print the findings as JSON. The same as --format json.")] = False,
    format_: Annotated[
        str | None,
        Option(
            "--format",
            help="Print the result only in this format: html, json, md (tables), csv (every figure), "
            "jmeter (aggregate report), locust (statistics), hgrm (percentiles in HdrHistogram's format).",
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        Option("--compare", metavar="RUN", help="Also print the changes from this earlier run of the same stacks."),
    ] = None,
    times: Annotated[bool, Option("--times", help="Print only the duration of each trial: load and overhead.")] = False,
) -> None:
    """Print the result of a run or of a load, and write the HTML report. The command reads only the run file.

    Example: weir report runs/sync-vs-async-1
    """
    path = find_run(run)
    if compare is not None and (json_ or format_ is not None or times):
        problem = "found together with --json, --format or --times, expected none of these flags"
        raise UsageError(f"--compare: {problem}", hint=f"weir gate {compare} {run} --json")
    if json_ or format_ is not None:
        print(_render(path, format_ or "json"), end="")
    elif times:
        from weir.findings.trial_phases import split_trial_times
        from weir.report.terminal import render_times

        with RunReader(path) as reader:
            stdout.print(render_times(split_trial_times(reader.trials())))
    else:
        show(path, html=html or beside(path), compare=None if compare is None else find_run(compare))


def _render(path: Path, form: str) -> str:
    """Returns the findings from the run file `path` in the format `form`, one of `FORMATS`."""
    if form not in FORMATS:
        raise UsageError(f"--format: found {form!r}, expected one of {', '.join(FORMATS)}", hint="weir report --help")
    from weir.findings import of_run
    from weir.report import begin_charts, exports, render_html, render_json

    with RunReader(path) as reader:
        # Other processes draw the charts at the same time.
        charts = begin_charts(reader) if form == "html" else None
        found = of_run(reader)
        if form == "html":
            return render_html(reader, found, charts=charts)
        if form == "json":
            return render_json(found) + "\n"
        if form in ("md", "csv"):
            return {"md": exports.render_markdown, "csv": exports.render_csv}[form](found)
        write = {"jmeter": exports.render_jmeter, "locust": exports.render_locust, "hgrm": exports.render_hgrm}[form]
        return write(exports.collect_samples(reader, found))


@contextmanager
def open_study_run(run: Path, place: str = "") -> Iterator[RunReader]:
    """Opens the run of a study. Raises UsageError for a missing run or a single load. `place`: prefix of the error."""
    with RunReader(find_run(run)) as reader:
        if reader.info.is_load:
            problem = "found a single load, expected a run of a study"
            raise UsageError(f"{place}{reader.path}: {problem}", hint=f"weir report {reader.path}")
        yield reader


def beside(path: Path) -> Path:
    """Returns the report's path: report.html beside run.weir, or NAME.html beside NAME.weir."""
    return path.with_name(REPORT_NAME) if path.name == RUN_FILE_NAME else path.with_suffix(".html")


def interim_answer(path: Path) -> RenderableType:
    """Returns the result so far of a run that may still be in progress."""
    from weir.findings import of_run
    from weir.report import render_answer

    with RunReader(path) as reader:
        return render_answer(of_run(reader))


def show(path: Path, *, html: Path, compare: Path | None = None, json: bool = False) -> None:
    """Prints the result of the run file `path`, or with `json` its findings, and writes the HTML report to `html`.

    `compare`: run file of an earlier run. The report then also shows the changes from the earlier run.
    """
    from weir.findings import LoadFindings, of_run, regression
    from weir.report import begin_charts, render_json, render_terminal, write_html

    with RunReader(path) as reader:
        charts = begin_charts(reader)
        found, changes = of_run(reader), None
        if compare is not None:
            with RunReader(compare) as base:
                changes = regression.compare_runs(
                    base, reader, regression.METRICS, _COMPARED_THRESHOLD, any_environment=True
                )
        # weir writes the file first: a closed terminal prevents printing, but not the file.
        try:
            write_html(reader, found, html, changes, charts=charts)
        finally:
            if json:
                print(render_json(found))
            elif isinstance(found, LoadFindings):
                trial, pipeline = found.trial, found.plan.get("pipeline", 1)
                print_lines(summary_text(found.summary, trial.cell.load, trial.result.resources, pipeline))
            else:
                stdout.print(render_terminal(found))
            if changes is not None:
                print_lines(regression.format_markdown(changes), wraps=False)
    say(f"report: {html.resolve()}")
