"""`weir wrk`, `weir wrk2`, `weir hey` and `weir ab`: the command line of another tool, run by weir's engine and told as that tool tells it.

The tool's own output goes to standard output, so that what parses it goes on working; weir's verdict and what differs go to standard error.
Whoever replaces such a tool in a loop of short runs pays for every import before the load begins, and the load for every one after that:
there is no typer and no rich, and pydantic comes when the load is over.
"""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from weir.compat.front_end import Asked, Outcome, ToolExit
from weir.engine_process import Record
from weir.generators.engine import EngineLoad, LoadListener
from weir.model.errors import WeirError

if TYPE_CHECKING:
    from weir.model.records import LoadEnd


def front_end(tool: str, arguments: Sequence[str]) -> int:
    """Does what `tool` would do with `arguments`, and gives its exit code.

    Args:
        tool: a key of `weir.compat.front_end.TOOLS`.
        arguments: what follows the tool's name.

    Raises:
        UsageError: the engine is missing.
        TargetError: the engine died in the middle of the load.
    """
    try:
        asked: Asked = import_module(f"weir.compat.{tool}").read(arguments)
        return _run(asked)
    except ToolExit as exit_:
        sys.stdout.write(exit_.out)
        sys.stdout.flush()
        sys.stderr.write(exit_.err)
        return exit_.code


def _run(asked: Asked) -> int:
    records: list[Record] = []
    done = 0

    def take(record: Record) -> None:
        nonlocal done
        records.append(record)
        match record["record"]:
            case "hello":
                sys.stdout.write(asked.heading())
                sys.stdout.flush()
            case "interval":
                # No report needs the histograms of a whole load's intervals, which would be most of the memory of a long one.
                record["histogram"] = ""
                before, done = done, done + record["ok"] + record["failed"]
                if told := asked.progress(before, done):
                    sys.stderr.write(told)
                    sys.stderr.flush()

    with ExitStack() as stack:
        plan, requests = asked.plan, None
        if asked.needs_requests:
            requests = Path(stack.enter_context(TemporaryDirectory(prefix="weir-")), "requests")
            plan = replace(plan, request_log=str(requests))
        running = stack.enter_context(EngineLoad(plan, LoadListener(on_record=take)))
        try:
            end = _ended(running)
        except WeirError as error:
            if records:
                raise
            raise asked.cannot_begin(error) from None
        outcome = _outcome(end, records, requests)
        sys.stdout.write(asked.report(outcome))
        sys.stdout.flush()
        sys.stderr.write(asked.complaints(outcome))
        _write_files(asked, outcome)
        remarks = [*end.summary.verdict.lines, *asked.notes(outcome), f"the same natively: {asked.native}"]
        sys.stderr.writelines(f"weir: {line}\n" for line in remarks)
        return asked.exit_code(outcome)


def _outcome(end: "LoadEnd", records: Sequence[Record], requests: Path | None) -> Outcome:
    """What came of a load, from its last record and from those before it."""
    # Here and not above: while a load runs, the import of pydantic would take CPU from it.
    from weir.model.records import Interval, LoadEvent, LoadStarted

    def of(kind: str) -> list[Record]:
        return [record for record in records if record["record"] == kind]

    return Outcome(
        end=end,
        intervals=[Interval.model_validate(record) for record in of("interval")],
        requests=requests,
        interrupted=end.stopped == "signal",
        events=[LoadEvent.model_validate(record) for record in of("event")],
        start_unix_ns=LoadStarted.model_validate(records[0]).start_unix_ns,
    )


def _ended(running: EngineLoad) -> "LoadEnd":
    """Waits for the end, which Ctrl-C brings on."""
    try:
        return running.result()
    except KeyboardInterrupt:
        running.stop()
        return running.result()


def _write_files(asked: Asked, outcome: Outcome) -> None:
    for path, text in asked.files(outcome).items():
        try:
            Path(path).write_text(text)
        except OSError as error:
            raise asked.cannot_write(path, error) from None
