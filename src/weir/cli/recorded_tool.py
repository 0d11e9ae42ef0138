"""Runs JMeter, k6 or Locust with the user's command line, and records the load (`weir jmeter`, `weir k6`, `weir locust`)."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

import typer
from typer import Argument, Option
from typer.core import TyperCommand, TyperOption

from weir.cli import options
from weir.cli.load_page import live_load
from weir.cli.load_recording import LoadRecording, choose_file
from weir.cli.output import say, write_json
from weir.generators.scripted.load import record
from weir.generators.scripted.process import ToolProcess
from weir.generators.scripted.tools import PreparedTool
from weir.model.errors import ExitCode
from weir.model.load import LoadPlan
from weir.model.load_observer import LoadObserver, LoadObservers
from weir.observe.resource_usage import compute_stack_resources
from weir.observe.watch import Watch

Watched = Annotated[
    list[int] | None,
    Option(
        "--watch", metavar="PID", help="Process id of the server on this machine, to report CPU, memory and threads."
    ),
]
WeirJson = Annotated[
    str | None,
    Option("--weir-json", metavar="FILE", help="Write weir's result as JSON to FILE (- is standard output)."),
]


def tool_arguments(tool: str, help_arguments: str) -> Any:
    """Returns the declaration of the argument for the tool's own command line."""
    text = f"Arguments of {tool}. weir {tool.lower()} -- {help_arguments} lists them."
    return Argument(metavar=f"{tool.upper()}-ARGUMENT...", help=text)


class Command(TyperCommand):
    """A parser of weir's options. At the first argument that is no option of weir, the tool's arguments begin."""

    needs_value: ClassVar[dict[str, bool]] = {}
    """A dict from each option of weir to True if the option needs a value, else False."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = [option for option in self.params if isinstance(option, TyperOption)]
        self.needs_value.update({name: not option.is_flag for option in options for name in option.opts})
        own = 0
        while own < len(args) and (name := args[own].partition("=")[0]) in {*self.needs_value, "--help", "-h"}:
            own += 2 if self.needs_value.get(name) and "=" not in args[own] else 1
        rest = args[own + 1 :] if args[own : own + 1] == ["--"] else args[own:]
        return super().parse_args(ctx, [*args[:own], "--", *rest])


@dataclass(frozen=True, slots=True)
class Outputs:
    """The values of weir's options."""

    out: str | None
    json: str | None
    watch: Sequence[int]
    live: bool
    listen: str | None
    strict: bool


def run_recorded(tool: PreparedTool, arguments: Sequence[str], outputs: Outputs) -> None:
    """Runs the tool, records the load, and prints the verdict. Exits with the tool's exit code."""
    options.check_listen(outputs.live, outputs.listen)
    file = None if outputs.out is None else choose_file(outputs.out)
    with ExitStack() as stack:
        recording: LoadRecording | None = None
        observers = LoadObservers()
        watch = stack.enter_context(Watch(outputs.watch, observers.on_sample)) if outputs.watch else None

        def observe(plan: LoadPlan) -> LoadObserver:
            nonlocal recording
            if file is not None:
                recording = stack.enter_context(LoadRecording(file, plan, sys.argv[1:]))
                observers.add(recording.recorder)
            if outputs.live:
                observers.add(stack.enter_context(live_load(plan, listen=outputs.listen)))
            return observers

        process = stack.enter_context(ToolProcess(tool.command, tool.source, environment=tool.environment))
        found = record(process, tool, observe, say)
        code = process.exit_code
        if code < 0:
            say(f"weir: signal {-code} ended {tool.title}")
            code = 128 - code
        if found is None:
            _explain_nothing(tool, arguments, code, outputs)
            raise typer.Exit(code)
        summary, resources = found.end.summary, None
        if watch is not None:
            watch.close()
            end_ns = found.start_ns + round(summary.duration_s * 1e9)
            resources = compute_stack_resources(watch.samples, start_ns=found.start_ns, end_ns=end_ns, stack_cpus=())
        if recording is not None:
            recording.finish(found.end, summary, resources, interrupted=process.is_interrupted, load=found.plan.load)
    for text in summary.verdict.lines:
        say(f"weir: {text}")
    if outputs.json is not None:
        server = {} if resources is None else {"server": {"pids": outputs.watch, **asdict(resources)}}
        write_json({**summary.to_json(), **server}, outputs.json, "--weir-json")
    if file is not None:
        say(f"to print the result again: weir report {file}")
    if code == ExitCode.DONE and outputs.strict and summary.verdict.validity != "valid":
        code = ExitCode.NOT_VALID
    raise typer.Exit(code)


def _explain_nothing(tool: PreparedTool, arguments: Sequence[str], code: int, outputs: Outputs) -> None:
    misplaced = [word for word in arguments if word.partition("=")[0] in Command.needs_value]
    problem = getattr(tool.source, "problem", "")
    if code and misplaced:
        say(
            f"weir: {misplaced[0]}: found after {tool.title}'s arguments, expected before them: it is an option of weir"
        )
    elif problem:
        say(f"weir: nothing was recorded: weir cannot read the samples of {tool.title}: {problem}")
    elif outputs.out is not None or outputs.json is not None:
        say(f"weir: nothing was recorded: {tool.title} reported no request")
