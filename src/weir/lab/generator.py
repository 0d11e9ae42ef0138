"""Which program makes the load of a trial, what it keeps of it, and what it reaches on a server that does nothing."""

import math
import shutil
from pathlib import Path

from weir.generators.ceiling import measure_ceiling
from weir.generators.engine import LoadListener
from weir.generators.external import ExternalLoad
from weir.generators.running import HERE, LoadFrom, RunningLoad
from weir.generators.tools import tool
from weir.model.load import LoadPlan
from weir.model.run import WEIR
from weir.study.forecast import MOST_CEILING_S

_CEILING_S = 1.0


def begin_load(
    generator: str, plan: LoadPlan, listener: LoadListener | None = None, *, folder: Path, load_from: LoadFrom = HERE
) -> RunningLoad:
    """Starts a load by weir's engine or by another program.

    Args:
        generator: which.
        plan: the load.
        listener: what is told of it; another program tells when it begins and nothing more.
        folder: where another program's output and files are kept. What an ended weir left there is removed.
        load_from: where weir's engine makes it.

    Raises:
        UsageError: it cannot make this load, or is not there.
        GeneratorError: it cannot be started.
    """
    if generator == WEIR:
        return load_from.begin(plan, listener)
    shutil.rmtree(folder, ignore_errors=True)
    return ExternalLoad(tool(generator), plan, listener, folder=folder)


def kept(generator: str, folder: Path) -> dict[str, Path]:
    """What another program left of its load, by name; nothing of weir's engine, whose records are in the run file."""
    if generator == WEIR:
        return {}
    return {f"{generator} {path.relative_to(folder)}": path for path in sorted(folder.rglob("*")) if path.is_file()}


def ceiling_rps(generator: str, plan: LoadPlan, *, server_cpus: tuple[int, ...], folder: Path, load_from: LoadFrom = HERE) -> float:
    """What a generator reaches with the request, the connections and the CPUs of a load on a server that does nothing.

    Raises:
        UsageError: it cannot ask again at once, which that takes.
        TargetError: it or the server failed.
    """
    if generator == WEIR:
        return measure_ceiling(
            plan,
            duration_s=_CEILING_S,
            server_cpus=server_cpus,
            begin=lambda on_null: load_from.begin(on_null, None),
            address=load_from.address,
        )
    # As long as in a trial, since some have to warm up; in one piece, of whole seconds, since some know no others.
    return measure_ceiling(
        plan,
        duration_s=min(math.ceil(plan.duration_s), MOST_CEILING_S),
        server_cpus=server_cpus,
        begin=lambda on_null: begin_load(generator, on_null, folder=folder),
        tries=1,
    )
