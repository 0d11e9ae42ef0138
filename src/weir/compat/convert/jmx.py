"""Converts one thread group of a JMeter test plan (.jmx) into a weir load. `weir.compat.jmx` reads the plan."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from weir.compat.convert.conversion import ArgumentParser, Conversion
from weir.compat.jmx.native import list_native_loads
from weir.compat.jmx.read import read_plan
from weir.model.errors import UsageError

_USAGE = "weir convert jmx PLAN.jmx -Jthreads=100"


def convert(tool: str, words: Sequence[str]) -> Conversion:
    """Returns the load of one thread group in a test plan: of the group in `--only NAME`, or of the only group."""
    parser = ArgumentParser(tool, _USAGE)
    parser.add_argument("files", nargs="*")
    parser.add_argument("-t", "--testfile", dest="more_files", action="append", default=[])
    parser.add_argument("-n", "--nongui", action="store_true")
    parser.add_argument("-J", dest="properties", action="append", type=_parse_property, default=[])
    parser.add_argument("--only")
    given, unknown = parser.parse_known_intermixed_args(words)
    files = [*given.files, *given.more_files]
    if unknown:
        parser.error(f"found {unknown[0]!r}, expected a file and -JNAME=VALUE")
    if len(files) != 1:
        parser.error(f"found {len(files)} files, expected one")
    plan = read_plan(Path(files[0]), dict(given.properties))
    natives = list_native_loads(plan)
    names = [native.group.name for native in natives]
    listed_names = ", ".join(names)
    if given.only is not None and given.only not in names:
        raise UsageError(f"--only: found {given.only!r}, expected one of the thread groups: {listed_names}")
    if given.only is None and len(natives) > 1:
        found = f"found {len(natives)} thread groups ({listed_names}), expected one"
        raise UsageError(f"{files[0]}: {found}", hint=f"weir convert jmx {files[0]} --only {shlex.quote(names[0])}")
    native = natives[0 if given.only is None else names.index(given.only)]
    note = "JMeter waits before a request, weir after a response: a wait becomes the pause of the previous step"
    return Conversion(spec=native.spec, scenario=native.scenario, files=native.files, notes=[note])


def _parse_property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"-J: found {f'-J{text}'!r}, expected -JNAME=VALUE", hint=_USAGE)
    return name, value
