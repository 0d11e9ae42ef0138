"""A test plan of JMeter's (.jmx) as one load of weir's own; `weir.compat.jmx` reads it."""

from collections.abc import Sequence
from pathlib import Path

from weir.compat.conversion import Conversion, Gap
from weir.compat.jmx.native import native_of
from weir.compat.jmx.read import read_test_plan
from weir.model.errors import UsageError

_USAGE = "weir convert jmx PLAN.jmx -Jthreads=100"


def read(arguments: Sequence[str]) -> Conversion:
    """What one thread group of a test plan does.

    Args:
        arguments: the file, `-JNAME=VALUE`, and `--only NAME` where there are several thread groups; `-n` and `-t` may stand there.

    Raises:
        UsageError: an argument or the file cannot be read.
    """
    file, properties, only = _told(arguments)
    plan = read_test_plan(Path(file), properties)
    gaps = [Gap(f"{file}:{one.line}", str(one).partition(": ")[2]) for one in plan.unsupported]
    natives = native_of(plan)
    named = [native.group.name for native in natives]
    if only is not None and only not in named:
        raise UsageError(f"--only: found {only!r}, expected one of the thread groups: {', '.join(named)}")
    if not natives:
        listed = "\n".join(f"  {gap}" for gap in gaps)
        raise UsageError(f"{file}: found no thread group that weir can run\n{listed}")
    native = natives[0 if only is None else named.index(only)]
    if only is None and len(natives) > 1:
        gaps.append(Gap(file, f"found {len(natives)} thread groups, of which a load is one: --only NAME chooses of {', '.join(named)}"))
    return Conversion(
        plan=native.plan,
        scenario=native.scenario,
        files=native.files,
        gaps=gaps,
        notes=["JMeter waits before a request, weir's users pause after an answer: each step has the pause of the next one"],
    )


def _told(arguments: Sequence[str]) -> tuple[str, dict[str, str], str | None]:
    """The file, the properties, and the thread group that is wanted."""
    files: list[str] = []
    properties: dict[str, str] = {}
    only = None
    left = list(arguments)
    while left:
        word = left.pop(0)
        if word.startswith("-J"):
            name, equals, value = (word[2:] or (left.pop(0) if left else "")).partition("=")
            if not equals or not name:
                raise UsageError(f"-J: found {word!r}, expected -JNAME=VALUE", hint=_USAGE)
            properties[name] = value
        elif word in ("--only", "-t", "--testfile") and left:
            if word == "--only":
                only = left.pop(0)
            else:
                files.append(left.pop(0))
        elif word in ("-n", "--nongui"):
            continue
        elif word.startswith("-"):
            raise UsageError(f"jmx: found {word!r}, expected a file and -JNAME=VALUE", hint=_USAGE)
        else:
            files.append(word)
    if len(files) != 1:
        raise UsageError(f"jmx: found {len(files)} files, expected one", hint=_USAGE)
    return files[0], properties, only
