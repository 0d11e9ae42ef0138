"""`weir k6`: runs the real k6, and records its load."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from weir.cli import options
from weir.cli.output import say
from weir.cli.recorded_tool import Command as Command
from weir.cli.recorded_tool import Outputs, Watched, WeirJson, run_recorded, tool_arguments
from weir.generators.scripted.tools import prepare_k6


def k6(
    arguments: Annotated[list[str] | None, tool_arguments("k6", "--help")] = None,
    out: options.KeepLoad = None,
    weir_json: WeirJson = None,
    watch: Watched = None,
    live: options.Live = False,
    listen: options.Listen = None,
    strict: options.Strict = False,
) -> None:
    """Run k6 and record the load. Write weir's options first, then k6's arguments.

    Flags, outputs, the summary, thresholds and exit codes are the same as in k6. weir runs the k6 on the PATH. If
    the PATH has no k6, weir builds k6 with Go.

    Example: weir k6 --out load.weir run --vus 20 --duration 30s script.js
    """
    with TemporaryDirectory(prefix="weir-k6-") as folder:
        tool = prepare_k6(arguments or [], Path(folder), say)
        run_recorded(tool, arguments or [], Outputs(out, weir_json, watch or [], live, listen, strict))
