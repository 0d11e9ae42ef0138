"""`weir ui`: past runs in a browser, each with its answer and its report, and a form that starts a load and shows it while it goes on."""

import threading
from pathlib import Path
from typing import Annotated

import typer

from weir.cli.form_load import FormLoads
from weir.cli.live import LISTEN_OPTION, page, told_the_end
from weir.model.errors import UsageError

_FOLDER = Path("runs")


def ui(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="The folder of runs; loads from the page are kept there.")] = _FOLDER,
    listen: Annotated[str | None, LISTEN_OPTION] = None,
) -> None:
    """Browse past runs in a browser, and start and watch loads there, until Ctrl-C. Prints the page's address, and opens nothing.

    Example: weir ui runs
    """
    if not folder.is_dir() and (folder != _FOLDER or folder.exists()):
        found = "something that is not a folder" if folder.exists() else "nothing there"
        raise UsageError(f"FOLDER: {folder}: found {found}, expected a folder of runs", hint="weir ui runs")
    # Here and not above: no other command needs a web server.
    from weir.live import RunFolder

    loads = FormLoads(folder)
    with page(loads.board, listen, runs=RunFolder(folder)), told_the_end(loads.board, "weir ui has ended."):
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            loads.close()
