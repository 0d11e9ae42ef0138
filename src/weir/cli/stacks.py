"""`weir stacks`: lists, checks and starts the stacks that weir knows."""

import random
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from weir.cli.completion import stacks as completed_stacks
from weir.cli.output import print_json, say, stdout
from weir.host import Host
from weir.lab.blocks import Progress
from weir.lab.check import ANSWER_S, check_stack, planned_cells
from weir.lab.placement import anywhere, place
from weir.lab.run import build_stack
from weir.lab.services import Services
from weir.lab.stack import process_names, running_stack
from weir.model.errors import ExitCode, TargetError, UsageError, WeirError
from weir.stacks.check import WrongAnswerError
from weir.stacks.manifest import Stack, all_stacks, manifest_files, read_manifest, read_stack
from weir.study.cpus import Cpus

app = typer.Typer(help="List, check and start stacks.", no_args_is_help=True)
_UNCAUGHT = "found no wrong answer, expected some: its manifest says answers_wrong"
_JSON = typer.Option("--json", help="Print JSON.")


@app.command(name="list")
def list_(json_: Annotated[bool, _JSON] = False) -> None:
    """List the stacks, how they serve and what."""
    stacks = [read_manifest(path) for path in manifest_files()]
    if json_:
        print_json([_described(stack) for stack in stacks])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("stack", "how it serves", "workloads", "variants", "missing"):
        # Names are there to be copied, however narrow the terminal is.
        table.add_column(column, no_wrap=column in ("stack", "variants"))
    for stack in stacks:
        manifest = stack.manifest
        table.add_row(
            manifest.id,
            stack.model,
            ", ".join(manifest.serves),
            "\n".join(manifest.variants) or "–",
            "; ".join(_missing_words(stack)) or "–",
        )
    stdout.print(table)


@app.command()
def check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Stacks, as ID or ID[VARIANT].", show_default=False, autocompletion=completed_stacks)
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every stack and every variant.")] = False,
    json_: Annotated[bool, _JSON] = False,
) -> None:
    """Build stacks, start them, hold their answers against every workload that they serve, load them for 3 s, and stop them."""
    if bool(names) == all_:
        found = "both stacks and --all" if all_ else "nothing to check"
        raise UsageError(f"weir stacks check: found {found}, expected names of stacks, or --all", hint="weir stacks list")
    stacks = [read_stack(name) for name in names] if names else all_stacks()
    placement = anywhere()
    failed: list[WeirError] = []
    results: list[dict[str, object]] = []
    with Host() as host, Services(host, on_step=lambda step: say(f"weir: {step}")) as services:
        for stack in stacks:
            result: dict[str, object] = {"stack": stack.label, "workloads": list(stack.serves), "ok": True, "problem": None}
            try:
                built = build_stack(host, stack, Progress(on_step=lambda step: say(f"weir: {step}")))
                passed = check_stack(host, services, built, placement, seed=random.randrange(2**32))
            except WeirError as error:
                result["problem"] = error.message
                said = f"caught: {error.message}"
                if not (all_ and stack.answers_wrong and isinstance(error, WrongAnswerError)):
                    failed.append(error)
                    result["ok"] = False
                    said = f"FAILED: {error.message}"
            else:
                result |= asdict(passed)
                said = (
                    f"right: {', '.join(stack.serves)}; ready in {passed.ready_s:.2f} s, {passed.answered:,} requests without a failure, "
                    f"{passed.compared:,} answers compared"
                )
                if stack.answers_wrong:
                    failed.append(TargetError(_UNCAUGHT))
                    result |= {"ok": False, "problem": _UNCAUGHT}
                    said = f"FAILED: {_UNCAUGHT}; {said}"
            results.append(result)
            if not json_:
                print(f"{stack.label:<28} {said}", flush=True)
    if json_:
        print_json(results)
    if failed:
        raise typer.Exit(ExitCode.USAGE if all(isinstance(error, UsageError) for error in failed) else ExitCode.TARGET)


@app.command()
def start(
    name: Annotated[str, typer.Argument(metavar="STACK", help="A stack, as ID or ID[VARIANT].", autocompletion=completed_stacks)],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port to listen on; 0: any free one.")] = 0,
    json_: Annotated[bool, _JSON] = False,
) -> None:
    """Start a stack and keep it running until Ctrl-C."""
    stack = read_stack(name)
    placement = place(Cpus())
    planned = planned_cells(stack, placement)[0]
    with Host() as host, Services(host, on_step=lambda step: say(f"weir: {step}")) as services:
        built = build_stack(host, stack, Progress(on_step=lambda step: say(f"weir: {step}")))
        log = built.folder.with_name(f"{built.folder.name}-start.log")
        with (
            services.running(planned, placement, log_of=lambda name: log.with_name(f"{log.stem}-{name}.log")) as needed,
            running_stack(
                host,
                built,
                planned,
                placement=placement,
                logs=[log],
                inputs=random.Random(),
                timeout_s=ANSWER_S,
                fields=needed.fields,
                front=needed.front,
                port=port,
            ) as running,
        ):
            if json_:
                print_json(
                    {"stack": stack.label, "url": running.base_url, "pid": running.pids[0], "log": str(log), "ready_s": running.ready_s}
                )
            else:
                known = f"PID {running.pids[0]}, ready in {running.ready_s or 0:.2f} s, log: {log}"
                print(f"{stack.label} listens on {running.base_url}/ ({known}); Ctrl-C ends it", flush=True)
                print(f"  weir load {running.base_url}/ --watch {running.pids[0]}", flush=True)
            ended = threading.Event()
            host.on_exit, host.on_gone = lambda _: ended.set(), ended.set
            names = [*process_names(planned.cell.replicas), *needed.names]
            try:
                # Also what has ended before anybody listened.
                if not any(host.ended(name) for name in names) and not host.is_gone:
                    ended.wait()
            except KeyboardInterrupt:
                return
            how = next((f"{name} ended {found.how}" for name in names if (found := host.ended(name)) is not None), "it ended unexpectedly")
            raise TargetError(f"{stack.label}: {how}; log: {log}")


def _described(stack: Stack) -> dict[str, object]:
    manifest = stack.manifest
    return {
        "id": manifest.id,
        "title": manifest.title,
        "model": manifest.model,
        "serves": list(manifest.serves),
        "variants": list(manifest.variants),
        "limits": {name: limit.default for name, limit in stack.limits.items()},
        "missing": _missing(stack),
        "missing_of_variants": _missing_of_variants(stack),
        "folder": str(Path(stack.folder)),
    }


def _missing(stack: Stack) -> list[str]:
    return [unmet.need for unmet in stack.unmet()]


def _missing_of_variants(stack: Stack) -> dict[str, list[str]]:
    """By variant, what it lacks beyond what its stack does; only variants that lack something."""
    own = _missing(stack)
    of_variants = {str(variant.variant): [need for need in _missing(variant) if need not in own] for variant in stack.variants()}
    return {name: missing for name, missing in of_variants.items() if missing}


def _missing_words(stack: Stack) -> list[str]:
    of_variants = [f"{', '.join(missing)} for {name}" for name, missing in _missing_of_variants(stack).items()]
    return [", ".join(_missing(stack)), *of_variants] if _missing(stack) else of_variants
