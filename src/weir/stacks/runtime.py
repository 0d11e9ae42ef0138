"""Builds environment variables that tell a runtime its number of CPUs. Pure.

Most runtimes read the CPU affinity of their process, but few runtimes read the CPU quota. With these variables, every
version of a runtime gives thread pools and garbage collectors the same size. A stack's own arguments and environment
variables have precedence.
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


def infer_runtime(command: Sequence[str], needs: Sequence[str]) -> Runtime | None:
    """Returns the runtime of a stack's command, or else the first runtime that the stack needs.

    >>> infer_runtime(["venv/bin/gunicorn", "app:app"], ["uv>=0.5"])
    'python'
    """
    names = [PurePath(command[0]).name, *(need.split(">=")[0] for need in needs)]
    return next((_TOOLS[name] for name in names if name in _TOOLS), None)


def count_usable_cpus(cpus: int, quota: float | None) -> int:
    """Returns the number of CPUs that a runtime should use. Rounds a quota up, as container runtimes do.

    >>> count_usable_cpus(4, 1.5), count_usable_cpus(1, None), count_usable_cpus(1, 0.25)
    (2, 1, 1)
    """
    return cpus if quota is None else max(1, min(cpus, math.ceil(quota)))


def build_cpu_environment(runtime: Runtime | None, cpus: int) -> dict[str, str]:
    """Returns the environment variables that tell a runtime its number of CPUs.

    - JVM: `-XX:ActiveProcessorCount` in `JAVA_TOOL_OPTIONS`; options on the command line have precedence.
    - Node: `UV_THREADPOOL_SIZE`, because libuv's thread pool does not read the affinity. The pool keeps at least its
      default size, because most of its threads wait for disks and name servers.
    - Python: `PYTHON_CPU_COUNT` (3.13 and later), and the thread pools of the numeric libraries.
    - Go: `GOMAXPROCS`.
    """
    python = ("PYTHON_CPU_COUNT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    variables: dict[Runtime | None, dict[str, str]] = {
        "jvm": {"JAVA_TOOL_OPTIONS": f"-XX:ActiveProcessorCount={cpus}"},
        "node": {"UV_THREADPOOL_SIZE": str(max(cpus, _LIBUV_DEFAULT_THREADS))},
        "python": dict.fromkeys(python, str(cpus)),
        "go": {"GOMAXPROCS": str(cpus)},
    }
    return variables.get(runtime, {})


def add_cpu_environment(own: Mapping[str, str], runtime: Runtime | None, cpus: int) -> dict[str, str]:
    """Returns a stack's `own` environment with the variables of `build_cpu_environment`. `own` has precedence.

    `JAVA_TOOL_OPTIONS` is a list of options. Later options have precedence, so the stack's options come last.

    >>> add_cpu_environment({"JAVA_TOOL_OPTIONS": "-Xmx64m"}, "jvm", 1)
    {'JAVA_TOOL_OPTIONS': '-XX:ActiveProcessorCount=1 -Xmx64m'}
    """
    ours, options = build_cpu_environment(runtime, cpus), "JAVA_TOOL_OPTIONS"
    both = {options: f"{ours[options]} {own[options]}"} if options in ours and options in own else {}
    return {**ours, **own, **both}
