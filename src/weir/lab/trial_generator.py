"""Starts the load of a trial's generator, lists the generator's files, and measures its limit on a null server."""

import math
import shutil
from functools import partial
from pathlib import Path

from weir.generators.engine import LOCAL
from weir.generators.external_load import ExternalLoad
from weir.generators.handle import LoadHandle, LoadSource
from weir.generators.null_server import measure_on_null_server
from weir.generators.registry import get_tool
from weir.generators.scripted.load import ScriptedLoad
from weir.model.load import LoadPlan
from weir.model.load_observer import LoadObserver
from weir.model.run_types import WEIR
from weir.study.time_estimate import MAX_NULL_SERVER_S

_NULL_SERVER_S = 1.0


def begin_load(
    generator: str,
    plan: LoadPlan,
    observer: LoadObserver | None = None,
    *,
    folder: Path,
    load_source: LoadSource = LOCAL,
) -> LoadHandle:
    """Starts a load with weir's engine on the machines of `load_source`, or with another generator. Another generator
    writes output and files to `folder`. Without a script, `observer` gets only the load's start. Raises UsageError
    if the generator is missing or does not support this load, GeneratorError if it does not start."""
    if generator == WEIR:
        return load_source.start(plan, observer)
    shutil.rmtree(folder, ignore_errors=True)
    if plan.script:
        return ScriptedLoad(generator, plan, observer, folder=folder)
    return ExternalLoad(get_tool(generator), plan, observer, folder=folder)


def list_generator_files(generator: str, folder: Path) -> dict[str, Path]:
    """Returns a dict from name to path for the files of a generator in `folder`; empty for weir's engine."""
    if generator == WEIR:
        return {}
    return {f"{generator} {path.relative_to(folder)}": path for path in sorted(folder.rglob("*")) if path.is_file()}


def measure_generator_limit(
    generator: str, plan: LoadPlan, server_cpus: tuple[int, ...], folder: Path, load_source: LoadSource = LOCAL
) -> float:
    """Returns a generator's requests/s on a null server, with the request, connections and CPUs of `plan`. Raises
    UsageError if the generator does not support a closed loop without pauses, TargetError if the load failed."""

    def start(on_null: LoadPlan) -> LoadHandle:
        return begin_load(generator, on_null, folder=folder, load_source=load_source)

    measure = partial(measure_on_null_server, plan, server_cpus=server_cpus, start=start)
    if generator == WEIR:
        return measure(duration_s=_NULL_SERVER_S, address=load_source.address)
    # As long as a trial's load, because some generators warm up. Rounded up, because some accept only whole seconds.
    return measure(duration_s=min(math.ceil(plan.duration_s), MAX_NULL_SERVER_S), tries=1)
