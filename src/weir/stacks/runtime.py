"""How a runtime is told how many CPUs it has, each by its own convention. Pure: names and numbers in, environment variables out.

A process is bound to its CPUs by affinity, which most runtimes look at by themselves; none of them looks at it everywhere, and a quota
below the number of CPUs is seen by few. Said outright, thread pools and garbage collectors are sized alike whatever a runtime's version
finds out. What a stack sets itself wins: its arguments and its environment come after these.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Literal

Runtime = Literal["jvm", "node", "python", "go"]

_LIBUV_DEFAULT_THREADS = 4
_TOOLS: Mapping[str, Runtime] = {
    "java": "jvm", "mvn": "jvm", "gradle": "jvm",
    "node": "node", "npm": "node", "npx": "node", "pnpm": "node",
    "python": "python", "python3": "python", "{python}": "python", "uv": "python",
    "go": "go",
}  # fmt: skip
"""Whose tools these are, as commands and as needs."""


def implied_runtime(command: Sequence[str], needs: Sequence[str]) -> Runtime | None:
    """The runtime that a stack's command or, where that is a program of its own, its needs speak of.

    >>> implied_runtime(["java", "-jar", "app.jar"], [])
    'jvm'
    >>> implied_runtime(["venv/bin/gunicorn", "app:app"], ["uv>=0.5"])
    'python'
    >>> implied_runtime(["./server"], []) is None
    True
    """
    names = [PurePath(command[0]).name, *(need.split(">=")[0] for need in needs)]
    return next((_TOOLS[name] for name in names if name in _TOOLS), None)


def usable_cpus(cpus: int, quota: float | None) -> int:
    """How many CPUs a process can keep busy that is bound to `cpus` and may use `quota` of one: as container runtimes count, rounded up.

    >>> usable_cpus(4, 1.5), usable_cpus(1, None), usable_cpus(1, 0.25)
    (2, 1, 1)
    """
    return cpus if quota is None else max(1, min(cpus, math.ceil(quota)))


def told_cpus(runtime: Runtime | None, cpus: int) -> dict[str, str]:
    """The environment that tells a runtime that it has `cpus` CPUs.

    - JVM: `-XX:ActiveProcessorCount`, through `JAVA_TOOL_OPTIONS`, which every JVM reads before its command line, which therefore wins.
    - Node: `os.availableParallelism()` follows the affinity; libuv's pool does not, and is never made smaller than its default, since
      its threads wait for disks and name servers rather than compute.
    - Python: `PYTHON_CPU_COUNT` (3.13 and later), and the thread pools of the numeric libraries.
    - Go: `GOMAXPROCS`.

    >>> told_cpus("go", 2)
    {'GOMAXPROCS': '2'}
    """
    match runtime:
        case "jvm":
            return {"JAVA_TOOL_OPTIONS": f"-XX:ActiveProcessorCount={cpus}"}
        case "node":
            return {"UV_THREADPOOL_SIZE": str(max(cpus, _LIBUV_DEFAULT_THREADS))}
        case "python":
            names = ("PYTHON_CPU_COUNT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
            return dict.fromkeys(names, str(cpus))
        case "go":
            return {"GOMAXPROCS": str(cpus)}
        case None:
            return {}


def with_told_cpus(own: Mapping[str, str], runtime: Runtime | None, cpus: int) -> dict[str, str]:
    """A stack's `own` environment with what tells its runtime its CPUs; where both set a variable the stack's stands.

    `JAVA_TOOL_OPTIONS` is a list of options, in which the later wins: the stack's are put behind.

    >>> with_told_cpus({"JAVA_TOOL_OPTIONS": "-Xmx64m"}, "jvm", 1)
    {'JAVA_TOOL_OPTIONS': '-XX:ActiveProcessorCount=1 -Xmx64m'}
    """
    told = told_cpus(runtime, cpus)
    options = [part["JAVA_TOOL_OPTIONS"] for part in (told, own) if "JAVA_TOOL_OPTIONS" in part]
    together = {"JAVA_TOOL_OPTIONS": " ".join(options)} if options else {}
    return {**told, **own, **together}
