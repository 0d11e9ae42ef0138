"""`weir stacks`: lists, checks and starts the stacks that weir knows."""

import random
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from weir.cli import options
from weir.cli.completion import stacks as completed_stacks
from weir.cli.output import make_table, print_json, say, stdout
from weir.host import Host
from weir.lab.conformance import build_check_cells, check_stack
from weir.lab.placement import place, use_all_cpus
from weir.lab.stack_process import list_process_names
from weir.lab.study_run import build_stack
from weir.lab.trial_services import Services
from weir.model.errors import ExitCode, TargetError, UsageError, WeirError
from weir.stacks.answer_check import WrongAnswerError
from weir.stacks.manifest import Stack, list_manifest_files, read_all_stacks, read_manifest, read_stack
from weir.study.file import Cpus

app = typer.Typer(help="List, check and start stacks.", no_args_is_help=True)
_UNCAUGHT = "found only right responses, expected a wrong one: the stack's manifest sets answers_wrong"


@app.command(name="list")
def list_(json_: options.Json = False) -> None:
    """List weir's stacks, how each stack serves requests, and its workloads."""
    stacks = [read_manifest(path) for path in list_manifest_files()]
    if json_:
        print_json([_to_json(stack) for stack in stacks])
        return
    # Names do not wrap, because users copy names even from a narrow terminal.
    columns = ("stack", "how it serves", "workloads", "variants", "missing")
    table = make_table(*columns, no_wrap=("stack", "variants"))
    for stack in stacks:
        missing = [", ".join(_list_missing(stack))] if _list_missing(stack) else []
        missing += [f"{', '.join(needs)} for {name}" for name, needs in _list_missing_of_variants(stack).items()]
        serves, variants = ", ".join(stack.manifest.serves), "\n".join(stack.manifest.variants)
        table.add_row(stack.manifest.id, stack.model, serves, variants or "–", "; ".join(missing) or "–")
    stdout.print(table)


def _to_json(stack: Stack) -> dict[str, object]:
    manifest = stack.manifest
    return {
        "id": manifest.id,
        "title": manifest.title,
        "model": manifest.model,
        "serves": list(manifest.serves),
        "variants": list(manifest.variants),
        "limits": {name: limit.default for name, limit in stack.limits.items()},
        "missing": _list_missing(stack),
        "missing_of_variants": _list_missing_of_variants(stack),
        "folder": str(Path(stack.folder)),
    }


def _list_missing(stack: Stack) -> list[str]:
    return [unmet.need for unmet in stack.unmet()]


def _list_missing_of_variants(stack: Stack) -> dict[str, list[str]]:
    """Returns the missing programs of each variant, without the missing programs of the stack itself."""
    own = _list_missing(stack)
    of_variants = {
        str(one.variant): [need for need in _list_missing(one) if need not in own] for one in stack.variants()
    }
    return {name: missing for name, missing in of_variants.items() if missing}


@app.command()
def check(
    names: Annotated[
        list[str] | None, Argument(help="Stacks to check, as ID or ID[VARIANT].", autocompletion=completed_stacks)
    ] = None,
    all_: Annotated[bool, Option("--all", help="Check all stacks and all their variants.")] = False,
    json_: options.Json = False,
) -> None:
    """Build and start stacks, check the responses to every workload, load each stack for 3 s, and stop it."""
    if bool(names) == all_:
        problem = f"found {'both stacks and --all' if all_ else 'nothing to check'}, expected names of stacks, or --all"
        raise UsageError(f"weir stacks check: {problem}", hint="weir stacks list")
    stacks = [read_stack(name) for name in names] if names else read_all_stacks()
    placement, failed = use_all_cpus(), list[WeirError]()
    results: list[dict[str, object]] = []
    with Host() as host, Services(host, on_step=_print_step) as services:
        for stack in stacks:
            result: dict[str, object] = {"stack": stack.label, "workloads": list(stack.serves)}
            result |= {"ok": True, "problem": None}
            try:
                built = build_stack(host, stack, _print_step)
                passed = check_stack(host, services, built, placement, seed=random.randrange(2**32))
            except WeirError as error:
                is_expected = all_ and stack.answers_wrong and isinstance(error, WrongAnswerError)
                text = f"{'caught' if is_expected else 'FAILED'}: {error.message}"
                result |= {"ok": is_expected, "problem": error.message}
                failed += [] if is_expected else [error]
            else:
                result |= asdict(passed)
                text = (
                    f"right: {', '.join(stack.serves)}; ready in {passed.ready_s:.2f} s, "
                    f"{passed.answered:,} requests without a failure, {passed.compared:,} responses compared"
                )
                if stack.answers_wrong:
                    text = f"FAILED: {_UNCAUGHT}; {text}"
                    result |= {"ok": False, "problem": _UNCAUGHT}
                    failed.append(TargetError(_UNCAUGHT))
            results.append(result)
            if not json_:
                print(f"{stack.label:<28} {text}", flush=True)
    if json_:
        print_json(results)
    if failed:
        raise typer.Exit(ExitCode.USAGE if all(isinstance(error, UsageError) for error in failed) else ExitCode.TARGET)


@app.command()
def start(
    name: Annotated[
        str, Argument(metavar="STACK", help="Stack to start, as ID or ID[VARIANT].", autocompletion=completed_stacks)
    ],
    port: Annotated[int, Option("--port", min=0, max=65535, help="Port of the stack. 0 means any free port.")] = 0,
    json_: options.Json = False,
) -> None:
    """Start a stack and keep it running until Ctrl-C."""
    stack = read_stack(name)
    placement = place(Cpus())
    planned = build_check_cells(stack, placement)[0]
    with Host() as host, Services(host, on_step=_print_step) as services:
        built = build_stack(host, stack, _print_step)
        log = built.folder.with_name(f"{built.folder.name}-start.log")
        process = services.running_with_stack(built, planned, placement, "start", inputs=random.Random(), port=port)
        with process as (needed, running):
            url, pid = running.base_url, running.pids[0]
            if json_:
                print_json({"stack": stack.label, "url": url, "pid": pid, "log": str(log), "ready_s": running.ready_s})
            else:
                known = f"PID {pid}, ready in {running.ready_s or 0:.2f} s, log: {log}"
                print(f"{stack.label} listens on {url}/ ({known}); Ctrl-C ends it", flush=True)
                print(f"  weir load {url}/ --watch {pid}", flush=True)
            try:
                how = _wait_for_end(host, [*list_process_names(planned.cell.replicas), *needed.names])
            except KeyboardInterrupt:
                return
            raise TargetError(f"{stack.label}: {how}; log: {log}")


def _print_step(step: str) -> None:
    say(f"weir: {step}")


def _wait_for_end(host: Host, names: list[str]) -> str:
    """Waits for the end of a process in `names` or of the host. Returns a text such as "app ended by signal 9"."""
    ended = threading.Event()
    host.on_exit, host.on_gone = lambda _: ended.set(), ended.set
    # A process may have ended before this function set the callbacks.
    if not any(host.ended(name) for name in names) and not host.is_gone:
        ended.wait()
    known = (f"{name} ended {found.how}" for name in names if (found := host.ended(name)) is not None)
    return next(known, "the host ended unexpectedly")
