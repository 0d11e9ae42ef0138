"""`weir wrk`, `weir wrk2`, `weir hey`, `weir ab`: run a tool's command line with weir, and print the tool's report.

The report goes to standard output, so that scripts can still parse the report. Standard error has weir's verdict
and the differences of weir's load from the tool's load. This module uses neither typer, rich nor pydantic, because
importing them would delay short runs.
"""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from weir.compat.flags import ToolError, ToolExit
from weir.compat.front_end import FrontEnd, LoadResult, read_command_line
from weir.engine_process import Record
from weir.generators.engine import EngineLoad
from weir.model.errors import WeirError
from weir.model.load_records import Interval, LoadEvent


def run_front_end(tool: str, words: Sequence[str]) -> int:
    """Runs the load of a command line of `tool`, a key of `TOOLS`. Returns the tool's exit code for this load. Raises
    UsageError if the engine is missing, TargetError if the engine ended unexpectedly during the load."""
    try:
        return _run(read_command_line(tool, words))
    except ToolExit as exit_:
        sys.stdout.write(exit_.text)
        return exit_.code
    except ToolError as error:
        # A late import: only an error needs these modules.
        from weir.cli.output import say_error

        say_error(error.message, error.hint)
        return error.code


def _run(front_end: FrontEnd) -> int:
    records: list[Record] = []
    done = 0

    def take(record: Record) -> None:
        nonlocal done
        records.append(record)
        match record["record"]:
            case "hello":
                print(front_end.format_heading(), end="", flush=True)
            case "interval":
                # No report needs the histograms of intervals, and these histograms fill the memory in a long load.
                record["histogram"] = ""
                before, done = done, done + record["ok"] + record["failed"]
                if progress := front_end.format_progress(before, done, has_ended=False):
                    print(progress, end="", flush=True, file=sys.stderr)

    with ExitStack() as stack:
        plan, request_log = front_end.plan, None
        if front_end.needs_request_log:
            request_log = Path(stack.enter_context(TemporaryDirectory(prefix="weir-")), "requests")
            plan = replace(plan, request_log=str(request_log))
        running = stack.enter_context(EngineLoad(plan, on_record=take))
        try:
            end = running.result_or_stop()
        except WeirError as error:
            if records:
                raise
            text, code = front_end.format_failed_start(error)
            print(text, end="", flush=True)
            raise ToolError(error.message, hint=error.hint, code=code) from None
        intervals = [Interval.from_json(record) for record in records if record["record"] == "interval"]
        events = [LoadEvent.from_json(record) for record in records if record["record"] == "event"]
        result = LoadResult(end, intervals, events, request_log)
        print(front_end.format_report(result), end="", flush=True)
        sys.stderr.write(front_end.format_progress(done, end.summary.requests.completed, has_ended=True))
        notes = [*end.summary.verdict.lines, *front_end.list_differences(result)]
        sys.stderr.writelines(f"weir: {line}\n" for line in [*notes, f"the same with weir load: {front_end.command}"])
        for path, text in front_end.format_files(result).items():
            try:
                Path(path).write_text(text)
            except OSError as error:
                raise ToolError(f"{path}: cannot be written: {error.strerror}", hint="", code=1) from None
        return front_end.choose_exit_code(result)
