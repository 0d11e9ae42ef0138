"""`weir jmeter`: runs the real JMeter, and records its load. With `--engine`, weir's engine runs the plan."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from typer import Option

from weir.cli import options
from weir.cli.output import say
from weir.cli.recorded_tool import Command as Command
from weir.cli.recorded_tool import Outputs, Watched, WeirJson, run_recorded, tool_arguments
from weir.generators.scripted.tools import prepare_jmeter
from weir.model.errors import ExitCode, UsageError


def jmeter(
    arguments: Annotated[list[str] | None, tool_arguments("JMeter", "-?")] = None,
    engine: Annotated[
        bool,
        Option(
            "--engine",
            help="Run the plan on weir's engine, which sends more requests. Exit with 2 if weir cannot run the plan exactly.",
        ),
    ] = False,
    out: options.KeepLoad = None,
    weir_json: WeirJson = None,
    watch: Watched = None,
    live: options.Live = False,
    listen: options.Listen = None,
    strict: options.Strict = False,
) -> None:
    """Run JMeter and record the load. Write weir's options first, then JMeter's arguments.

    Flags, files, console lines and exit codes are the same as in JMeter. weir runs the JMeter on the PATH. If the PATH
    has no JMeter, weir installs JMeter into its cache.

    Example: weir jmeter --out load.weir -n -t plan.jmx -l samples.jtl -Jthreads=20
    """
    outputs = Outputs(out, weir_json, watch or [], live, listen, strict)
    if engine:
        unsupported = {"--weir-json": weir_json, "--watch": watch, "--live": live}
        if given := [flag for flag, value in unsupported.items() if value]:
            raise UsageError(f"{given[0]}: found with --engine, expected only --out", hint="weir jmeter --help")
        from weir.cli.jmeter_engine import run_on_engine

        if run_on_engine(arguments or [], out):
            raise typer.Exit(ExitCode.INTERRUPTED)
        return
    with TemporaryDirectory(prefix="weir-jmeter-") as folder:
        tool = prepare_jmeter(arguments or [], Path(folder), say)
        run_recorded(tool, arguments or [], outputs)
