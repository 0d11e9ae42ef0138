"""`weir jmeter`: a JMeter test plan, run by weir's engine and reported as JMeter reports it."""

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from weir.cli.jmeter_run import Wanted, run_plan
from weir.cli.output import say
from weir.compat.jmx.plan import TestPlan
from weir.compat.jmx.read import read_test_plan
from weir.model.errors import ExitCode, UsageError
from weir.model.text import printable

_HINT = "weir jmeter --help"
_PROXY, _REMOTE, _JAVA = "requests go to their server directly", "there are no remote servers", "there is no Java"
_NOT_OFFERED = {
    **dict.fromkeys(("-E", "-H", "-P", "-N", "-u", "-a", "--proxyScheme", "--proxyHost", "--proxyPort", "--nonProxyHosts"), _PROXY),
    **dict.fromkeys(("-r", "-R", "-s", "-X", "--runremote", "--remotestart", "--server", "--remoteexit"), _REMOTE),
    **dict.fromkeys(("-S", "-i", "-d", "--systemPropertyFile", "--jmeterlogconf", "--homedir"), _JAVA),
    **dict.fromkeys(("-g", "--reportonly"), "weir audit reads JTL files"),
    **dict.fromkeys(("-v",), "weir --version"),
}


class Command(TyperCommand):
    """Tells wrong flags in JMeter's words. JMeter itself ends with 0 then, from which no script learns that nothing was run."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Takes the arguments apart."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option = getattr(error, "option_name", None)
            if option is None:
                raise
            if option in _NOT_OFFERED:
                raise UsageError(
                    f"{option}: found an option of JMeter's that weir does not offer: {_NOT_OFFERED[option]}", hint=_HINT
                ) from None
            missing = "requires an argument" in str(getattr(error, "message", ""))
            print(f"Error: {'Missing argument to option' if missing else 'Unknown option'} {option}", file=sys.stderr)
            print(f"  try: {_HINT}", file=sys.stderr)
            raise typer.Exit(ExitCode.USAGE) from None


def jmeter(
    plan: Annotated[Path | None, typer.Argument(metavar="PLAN.jmx", help="The test plan; the same as -t.")] = None,
    testfile: Annotated[Path | None, typer.Option("-t", "--testfile", help="The test plan.")] = None,
    nongui: Annotated[bool, typer.Option("-n", "--nongui", help="Without a GUI; weir has none.")] = False,
    logfile: Annotated[Path | None, typer.Option("-l", "--logfile", help="Write a row for each sample to this JTL file (CSV).")] = None,
    force_delete: Annotated[
        bool, typer.Option("-f", "--forceDeleteResultFile", help="Empty the JTL file first; otherwise rows are added to what is there.")
    ] = False,
    properties: Annotated[
        list[str] | None,
        typer.Option("-J", "--jmeterproperty", metavar="NAME=VALUE", help="A property, for ${__P(NAME)} in the plan: -Jthreads=20."),
    ] = None,
    global_properties: Annotated[
        list[str] | None, typer.Option("-G", "--globalproperty", metavar="NAME=VALUE", help="The same: there are no remote servers.")
    ] = None,
    property_files: Annotated[
        list[Path] | None, typer.Option("-q", "--addprop", help="A file of properties, NAME=VALUE lines; -J goes before it.")
    ] = None,
    propfile: Annotated[Path | None, typer.Option("-p", "--propfile", help="The same, read before those of -q.")] = None,
    system_properties: Annotated[
        list[str] | None, typer.Option("-D", "--systemproperty", metavar="NAME=VALUE", help="Not used: there is no Java.")
    ] = None,
    jmeter_log: Annotated[str | None, typer.Option("-j", "--jmeterlogfile", help="Not used: weir speaks on standard error.")] = None,
    log_levels: Annotated[list[str] | None, typer.Option("-L", "--loglevel", help="Not used.")] = None,
    dashboard: Annotated[
        bool, typer.Option("-e", "--reportatendofloadtests", help="Write weir's report as a page, for a plan of one thread group.")
    ] = False,
    dashboard_folder: Annotated[
        Path | None, typer.Option("-o", "--reportoutputfolder", help="The folder for that: index.html, and run.weir for weir report.")
    ] = None,
    summary_report: Annotated[
        Path | None, typer.Option("--summary-report", help="Write JMeter's summary report to this file, as CSV.")
    ] = None,
    aggregate_report: Annotated[
        Path | None, typer.Option("--aggregate-report", help="Write JMeter's aggregate report to this file, as CSV.")
    ] = None,
    ignore_unsupported: Annotated[
        bool, typer.Option("--ignore-unsupported", help="Run a plan without those of its elements that weir does not support.")
    ] = False,
) -> None:
    """Run a JMeter test plan, and report it as JMeter does.

    Standard output has what JMeter would print; the verdict, and what differs, go to standard error. The exit code is 0 when the plan was
    run, however it was answered.

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
    for file in [*([] if propfile is None else [propfile]), *(property_files or [])]:
        values |= _property_file(file)
    values |= dict(_property(text) for text in [*(global_properties or []), *(properties or [])])
    if system_properties:
        say(f"weir: -D{system_properties[0]}: not used: there is no Java")
    read = read_test_plan(path, values)
    _refuse(read, ignore=ignore_unsupported)
    wanted = Wanted(logfile, not force_delete, summary_report, aggregate_report, dashboard_folder)
    if run_plan(read, wanted, sys.argv[1:]):
        raise typer.Exit(ExitCode.INTERRUPTED)


def _refuse(plan: TestPlan, *, ignore: bool) -> None:
    """Says what is not supported; an error unless that is to be ignored and something is left."""
    lines = [f"  {printable(str(one))}" for one in plan.unsupported]
    if lines and not (ignore and plan.groups):
        found = "1 element" if len(lines) == 1 else f"{len(lines)} elements"
        hint = "--ignore-unsupported runs the plan without" if plan.groups else "nothing else is in the plan"
        raise UsageError("\n".join([f"{plan.path}: found {found} that weir does not support:", *lines]), hint=hint)
    for line in lines:
        say(f"weir: left out:{line[1:]}")


def _property(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip(), value


def _property_file(path: Path) -> dict[str, str]:
    """The properties in a file, each on a line of its own."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; expected a file of properties") from None
    pairs = (re.split(r"\s*[=:]\s*", line.strip(), maxsplit=1) for line in lines if not re.match(r"\s*([#!]|$)", line))
    return {pair[0]: pair[1] if len(pair) == 2 else "" for pair in pairs}
