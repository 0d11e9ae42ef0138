"""`weir doctor`: what is present, what is missing, and the command that installs it."""

import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.table import Table

from weir import __version__
from weir.cli.output import print_json, say, say_error, stdout
from weir.generators.tool import Tool as LoadTool
from weir.generators.tools import TOOLS
from weir.host import Capabilities, Host
from weir.model.errors import ExitCode, WeirError
from weir.model.needs import Unmet
from weir.places import cache_folder, engine_binary
from weir.services.manifest import DatabaseService, FrontService, Service, StandbyService, read_service
from weir.services.needs import unmet_by_machine
from weir.services.package import is_fetched
from weir.stacks.manifest import all_stacks
from weir.stacks.tools import JDK_TOOLS, Tool, find_tool, first_line

_INSTALL = {
    "uv": "pip install uv",
    "mvn": "apt-get install maven",
    "node": "apt-get install nodejs npm",
    "npm": "apt-get install nodejs npm",
    "go": "apt-get install golang-go",
    "cargo": "rustup toolchain install stable",
    "nginx": "apt-get install nginx-light",
    "wrk": "apt-get install wrk",
}
_JDK = "17"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that weir looked for."""

    what: str
    ok: bool
    required: bool
    found: str
    needed_by: str = ""
    remedy: str = ""


def doctor(
    install: Annotated[bool, typer.Option("--install", help="First install JMeter and Locust into the cache.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what is present, what is missing, and how to get it. Exits with 2 when something that weir itself needs is missing."""
    failed = [*_install_generators()] if install else []
    findings = [*_weir_itself(), *_machine(), *_tools(), *_services(), *map(_generator, TOOLS.values())]
    if json_:
        print_json([asdict(finding) for finding in findings])
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        for finding in findings:
            mark = "ok" if finding.ok else "MISSING" if finding.required else "absent"
            remedy = f"{finding.needed_by + ': ' if finding.needed_by else ''}{finding.remedy}" if not finding.ok else finding.needed_by
            table.add_row(mark, finding.what, finding.found, remedy)
        stdout.print(table)
    if any(not finding.ok and finding.required for finding in findings):
        raise typer.Exit(ExitCode.USAGE)
    if failed:
        raise typer.Exit(failed[0].exit_code)


def _install_generators() -> Iterator[WeirError]:
    """Installs the generators that weir can install. What fails is said, and does not keep the others from it."""
    for tool in TOOLS.values():
        if tool.is_installable:
            try:
                tool.install(lambda what: say(f"installing {what}"))
            except WeirError as error:
                say_error(error.message, error.hint)
                yield error


def _generator(tool: LoadTool) -> Finding:
    """Another program that can make the load of a study."""
    program, key = tool.where(), f'generator = "{tool.name}"'
    if program is None:
        return Finding(tool.name, False, False, "not found", key, tool.origin)
    return Finding(tool.name, True, False, f"{tool.version()}, {program}", key)


def _weir_itself() -> list[Finding]:
    findings = [Finding("weir", True, True, f"{__version__} on Python {platform.python_version()}")]
    try:
        binary = engine_binary()
        said = first_line(str(binary), "--version") or "does not run"
        findings.append(
            Finding("weir-engine", __version__ in said, True, said, remedy="make setup, or: pip install --force-reinstall weirbench-engine")
        )
        with Host() as host:
            findings.append(Finding("isolation of stacks", True, False, host.isolation_detail))
            findings += _abilities(host.capabilities())
    except WeirError as error:
        findings.append(Finding("weir-engine", False, True, error.message, remedy=error.hint))
    folder = cache_folder()
    parent = next(path for path in (folder, *folder.parents) if path.exists())
    writable = os.access(parent, os.W_OK)
    findings.append(Finding("cache folder", writable, True, str(folder), remedy="set WEIR_CACHE to a folder that you may write to"))
    return findings


def _abilities(able: Capabilities) -> list[Finding]:
    """What studies may ask for in `[cpus]` and `[network]`."""
    asked = (
        ("quotas and memory limits", able.limits, "cpus.quota, cpus.memory", "run as root where /sys/fs/cgroup is writable"),
        ("networks of stacks' own", able.network, "network.isolation", "run as root with iproute2"),
        ("published ports", able.port_translation, "network.publish", "apt-get install nftables"),
        ("delay and loss", able.netem, "network.delay_ms, network.loss", "a kernel with CONFIG_NET_SCH_NETEM: modprobe sch_netem"),
    )
    return [Finding(what, ability.possible, False, ability.detail, key, remedy) for what, ability, key, remedy in asked]


def _machine() -> list[Finding]:
    cpus = len(os.sched_getaffinity(0))
    cpu_note = "generator and stack cannot have a CPU each" if cpus < 2 else ""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return [
        Finding(
            "Linux", platform.system() == "Linux", True, f"{platform.system()} {platform.release()}", remedy="weir reads /proc: use Linux"
        ),
        Finding("CPUs", cpus >= 2, False, f"{cpus} available", remedy=cpu_note),
        Finding("memory", True, False, f"{memory_bytes / 1e9:.0f} GB"),
    ]


def _tools() -> list[Finding]:
    """Every tool that a stack needs."""
    needed: dict[str, list[str]] = {}
    for stack in all_stacks():
        for need in stack.needs:
            if stack.id not in needed.setdefault(need, []):
                needed[need].append(stack.label)
    return [_tool(need, ", ".join(stacks)) for need, stacks in sorted(needed.items())]


def _tool(need: str, stacks: str) -> Finding:
    found = find_tool(need)
    if isinstance(found, Tool):
        return Finding(need, True, False, found.said or str(found.path), stacks)
    return Finding(need, False, False, found.why, stacks, _install(need))


def _install(need: str) -> str:
    """The command that installs a tool."""
    tool, _, version = need.partition(">=")
    if tool in JDK_TOOLS:
        return f"apt-get install openjdk-{version or _JDK}-jdk-headless, or name another JDK in JAVA_HOME"
    newest = f", or a newer one first on the PATH where that is older than {version}" if version else ""
    return f"{_INSTALL.get(tool, f'install {tool}')}{newest}"


def _services() -> list[Finding]:
    """Every service that a stack needs."""
    needed: dict[str, list[str]] = {}
    for stack in all_stacks():
        for name in stack.services:
            if stack.id not in needed.setdefault(name, []):
                needed[name].append(stack.label)
    return [_service(read_service(name), ", ".join(stacks)) for name, stacks in sorted(needed.items())]


def _service(service: Service, stacks: str) -> Finding:
    unmet = unmet_by_machine(service)
    if unmet is not None:
        return Finding(service.title, False, False, str(unmet), stacks, _remedy(service, unmet))
    return Finding(service.title, True, False, _source(service), stacks)


def _remedy(service: Service, unmet: Unmet) -> str:
    """How a service gets what it lacks."""
    match service:
        case StandbyService():
            primary = read_service(service.of)
            assert isinstance(primary, DatabaseService)
            return f"unset {primary.own_server}" if unmet.need == service.id else _remedy(primary, unmet)
        case DatabaseService():
            own = f"a server of your own: {service.own_server}=…"
            return own if unmet.need == service.id else f"{_install(unmet.need)}, or {own}"
        case _:
            return _install(unmet.need)


def _source(service: Service) -> str:
    """Where a service that can run comes from."""
    match service:
        case FrontService():
            return service.found() or ""
        case StandbyService():
            return f"made from the data of {service.of}"
        case DatabaseService():
            if service.own_url is not None:
                return f"the server that {service.own_server} names"
            package = service.package
            if is_fetched(service):
                return f"{package.name} {package.version}, in the cache"
            return f"{package.tool} will fetch {package.name} {package.version}"
        case _:
            return "part of weir-engine"
