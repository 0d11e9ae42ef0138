"""`weir jmeter`: a JMeter test plan, run by weir's engine with JMeter's report."""

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option
from typer.core import TyperCommand

from weir.cli.jmeter_run import Outputs, run_plan
from weir.cli.output import say
from weir.compat.jmx.read import read_test_plan
from weir.compat.jmx.test_plan import TestPlan
from weir.model.errors import ExitCode, UsageError
from weir.model.sanitize import sanitize

_HINT = "weir jmeter --help"
_NOT_OFFERED = {
    option: reason
    for options, reason in {
        "-E -H -P -N -u -a --proxyScheme --proxyHost --proxyPort --nonProxyHosts": "requests go to their server directly",
        "-r -R -s -X --runremote --remotestart --server --remoteexit": "there are no remote servers",
        "-S -i -d --systemPropertyFile --jmeterlogconf --homedir": "there is no Java",
        "-g --reportonly": "weir audit reads JTL files",
        "-v": "weir --version",
    }.items()
    for option in options.split()
}
_PROPERTY = "NAME=VALUE"


class Command(TyperCommand):
    """Reports wrong flags in JMeter's words, with an exit code: JMeter's own is 0, as if the plan was run."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option = getattr(error, "option_name", None)
            if option is None:
                raise
            if option in _NOT_OFFERED:
                found = f"{option}: found an option of JMeter's that weir does not offer"
                raise UsageError(f"{found}: {_NOT_OFFERED[option]}", hint=_HINT) from None
            missing = "requires an argument" in str(getattr(error, "message", ""))
            print(f"Error: {'Missing argument to option' if missing else 'Unknown option'} {option}", file=sys.stderr)
            print(f"  try: {_HINT}", file=sys.stderr)
            raise typer.Exit(ExitCode.USAGE) from None


def jmeter(
    plan: Annotated[Path | None, Argument(metavar="PLAN.jmx", help="The test plan; the same as -t.")] = None,
    testfile: Annotated[Path | None, Option("-t", "--testfile", help="The test plan.")] = None,
    nongui: Annotated[bool, Option("-n", "--nongui", help="Accepted for JMeter's sake: weir has no GUI.")] = False,
    logfile: Annotated[
        Path | None, Option("-l", "--logfile", help="Write a row for each sample to this JTL file (CSV).")
    ] = None,
    force_delete: Annotated[
        bool, Option("-f", "--forceDeleteResultFile", help="Empty the JTL file first, instead of appending to it.")
    ] = False,
    properties: Annotated[
        list[str] | None,
        Option("-J", "--jmeterproperty", metavar=_PROPERTY, help="A property, for ${__P(NAME)}: -Jthreads=20."),
    ] = None,
    global_properties: Annotated[
        list[str] | None,
        Option("-G", "--globalproperty", metavar=_PROPERTY, help="The same as -J: there are no remote servers."),
    ] = None,
    property_files: Annotated[
        list[Path] | None, Option("-q", "--addprop", help="A file of NAME=VALUE lines; -J overrides it.")
    ] = None,
    propfile: Annotated[Path | None, Option("-p", "--propfile", help="The same, read before the files of -q.")] = None,
    system_properties: Annotated[
        list[str] | None, Option("-D", "--systemproperty", metavar=_PROPERTY, help="Ignored: there is no Java.")
    ] = None,
    jmeter_log: Annotated[
        str | None, Option("-j", "--jmeterlogfile", help="Ignored: weir writes to standard error.")
    ] = None,
    log_levels: Annotated[list[str] | None, Option("-L", "--loglevel", help="Ignored.")] = None,
    dashboard: Annotated[
        bool,
        Option("-e", "--reportatendofloadtests", help="Write weir's HTML report. Needs a plan of one thread group."),
    ] = False,
    dashboard_folder: Annotated[
        Path | None, Option("-o", "--reportoutputfolder", help="Folder of the report: index.html and run.weir.")
    ] = None,
    summary_report: Annotated[
        Path | None, Option("--summary-report", help="Write JMeter's summary report to this file, as CSV.")
    ] = None,
    aggregate_report: Annotated[
        Path | None, Option("--aggregate-report", help="Write JMeter's aggregate report to this file, as CSV.")
    ] = None,
    ignore_unsupported: Annotated[
        bool, Option("--ignore-unsupported", help="Leave out the elements of the plan that weir does not support.")
    ] = False,
) -> None:
    """Run a JMeter test plan, and report as JMeter does.

    Standard output has JMeter's report. The verdict, and differences from JMeter, go to standard error. The exit code
    is 0 if the plan was run, also if requests failed.

    Example: weir jmeter -n -t plan.jmx -l samples.jtl -Jthreads=20
    """
    if (plan is None) == (testfile is None):
        raise UsageError("Non-GUI runs require a test plan: found " + ("none" if plan is None else "two"), hint=_HINT)
    if dashboard != (dashboard_folder is not None):
        raise UsageError("-e and -o FOLDER: found one of them, expected both or neither", hint=_HINT)
    path = plan or testfile
    assert path is not None
    if not path.is_file():
        print(f"An error occurred: The file {path.absolute()} doesn't exist or can't be opened")
        raise typer.Exit(1)
    values: dict[str, str] = {}
    for file in [*([propfile] if propfile else []), *(property_files or [])]:
        values |= _read_properties(file)
    for text in [*(global_properties or []), *(properties or [])]:
        name, _, value = text.partition("=")
        values[name.strip()] = value
    if system_properties:
        say(f"weir: -D{system_properties[0]}: not used: there is no Java")
    read = read_test_plan(path, values)
    _report_unsupported(read, ignore=ignore_unsupported)
    outputs = Outputs(logfile, not force_delete, summary_report, aggregate_report, dashboard_folder)
    if run_plan(read, outputs, sys.argv[1:]):
        raise typer.Exit(ExitCode.INTERRUPTED)


def _report_unsupported(plan: TestPlan, *, ignore: bool) -> None:
    """Lists the unsupported elements. Raises UsageError unless they are ignored and something is left."""
    lines = [f"  {sanitize(str(one))}" for one in plan.unsupported]
    if lines and not (ignore and plan.groups):
        found = "1 element" if len(lines) == 1 else f"{len(lines)} elements"
        hint = "--ignore-unsupported runs the plan without" if plan.groups else "nothing else is in the plan"
        raise UsageError("\n".join([f"{plan.path}: found {found} that weir does not support:", *lines]), hint=hint)
    for line in lines:
        say(f"weir: left out:{line[1:]}")


def _read_properties(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; expected a file of properties") from None
    pairs = (re.split(r"\s*[=:]\s*", line.strip(), maxsplit=1) for line in lines if not re.match(r"\s*([#!]|$)", line))
    return {name: value[0] if value else "" for name, *value in pairs}
