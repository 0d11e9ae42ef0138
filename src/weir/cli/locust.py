"""`weir locust`: runs the real Locust, and records its load."""

from typing import Annotated

from typer import Option

from weir.cli import options
from weir.cli.recorded_tool import Command as Command
from weir.cli.recorded_tool import Outputs, Watched, WeirJson, run_recorded, tool_arguments
from weir.generators.scripted.locust_version import find_python
from weir.generators.scripted.tools import prepare_locust


def locust(
    arguments: Annotated[list[str] | None, tool_arguments("Locust", "--help")] = None,
    python: Annotated[
        str | None,
        Option(
            "--python", metavar="PATH", help="Python with Locust and the locustfile's modules. Default: weir's Python."
        ),
    ] = None,
    out: options.KeepLoad = None,
    weir_json: WeirJson = None,
    watch: Watched = None,
    live: options.Live = False,
    listen: options.Listen = None,
    strict: options.Strict = False,
) -> None:
    """Run Locust and record the load. Write weir's options first, then Locust's arguments.

    Flags, tables, files, page and exit codes are the same as in Locust. weir counts a response time from the end of the
    user's pause. Install Locust with: pip install 'weirbench[locust]'.

    Example: weir locust --out load.weir -f locustfile.py --host http://127.0.0.1:8000 --headless -u 20 -r 5 -t 30s
    """
    tool = prepare_locust(arguments or [], find_python(python))
    run_recorded(tool, arguments or [], Outputs(out, weir_json, watch or [], live, listen, strict))
