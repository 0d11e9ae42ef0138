"""`weir doctor`: lists the programs and features that weir needs, and the commands to install missing programs."""

import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.table import Table
from typer import Option

from weir import __version__
from weir.cli import options
from weir.cli.output import print_json, say, say_error, stdout
from weir.generators.external_tool import Tool as LoadTool
from weir.generators.registry import TOOLS
from weir.host import Capabilities, Host
from weir.model.errors import ExitCode, WeirError
from weir.model.requirements import UnmetRequirement
from weir.paths import find_cache_folder, find_engine_binary
from weir.services.manifest import DatabaseService, FrontService, Service, StandbyService, read_service
from weir.services.package import is_fetched
from weir.services.service_needs import find_unmet_need
from weir.stacks.manifest import Stack, read_all_stacks
from weir.stacks.toolchain import JDK_TOOLS, Tool, find_tool, read_first_line

_INSTALL = {
    "uv": "pip install uv",
    "mvn": "apt-get install maven",
    **dict.fromkeys(("node", "npm"), "apt-get install nodejs npm"),
    "go": "apt-get install golang-go",
    "cargo": "rustup toolchain install stable",
    "nginx": "apt-get install nginx-light",
    "wrk": "apt-get install wrk",
}
_JDK = "17"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of the search for one program or feature."""

    what: str
    ok: bool
    required: bool
    found: str
    needed_by: str = ""
    remedy: str = ""


def doctor(
    install: Annotated[
        bool, Option("--install", help="First install JMeter, k6 and Locust into weir's cache.")
    ] = False,
    json_: options.Json = False,
) -> None:
    """List present and missing programs, and commands to install them. Exit with 2 if weir itself cannot run."""
    failed = [*_install_generators()] if install else []
    stacks = read_all_stacks()
    needed = _list_labels((stack, stack.needs) for stack in stacks)
    services = _list_labels((stack, stack.services) for stack in stacks)
    findings = [*_find_weir(), *_find_machine(), *(_find_tool(need, labels) for need, labels in needed)]
    findings += [_find_service(read_service(name), labels) for name, labels in services]
    findings += map(_find_generator, TOOLS.values())
    if json_:
        print_json([asdict(finding) for finding in findings])
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        for finding in findings:
            mark = "ok" if finding.ok else "MISSING" if finding.required else "absent"
            parts = [finding.needed_by] if finding.ok else [*filter(None, [finding.needed_by]), finding.remedy]
            table.add_row(mark, finding.what, finding.found, ": ".join(parts))
        stdout.print(table)
    if any(not finding.ok and finding.required for finding in findings):
        raise typer.Exit(ExitCode.USAGE)
    if failed:
        raise typer.Exit(failed[0].exit_code)


def _install_generators() -> Iterator[WeirError]:
    """Installs missing load generators. Prints and yields each error, then continues with the next generator."""
    for tool in TOOLS.values():
        if tool.installation and tool.find() is None:
            try:
                tool.installation.install(lambda what: say(f"installing {what}"))
            except WeirError as error:
                say_error(error.message, error.hint)
                yield error


def _find_weir() -> list[Finding]:
    findings = [Finding("weir", True, True, f"{__version__} on Python {platform.python_version()}")]
    try:
        version = read_first_line(str(find_engine_binary()), "--version") or "does not run"
        remedy = "make setup, or: pip install --force-reinstall weirbench-engine"
        findings.append(Finding("weir-engine", __version__ in version, True, version, remedy=remedy))
        with Host() as host:
            findings.append(Finding("isolation of stacks", True, False, host.isolation_detail))
            findings += _find_capabilities(host.capabilities())
    except WeirError as error:
        findings.append(Finding("weir-engine", False, True, error.message, remedy=error.hint))
    folder = find_cache_folder()
    parent = next(path for path in (folder, *folder.parents) if path.exists())
    remedy = "set WEIR_CACHE to a folder that you may write to"
    return [*findings, Finding("cache folder", os.access(parent, os.W_OK), True, str(folder), remedy=remedy)]


def _find_capabilities(able: Capabilities) -> list[Finding]:
    """Returns a finding for each feature that a study's `[cpus]` or `[network]` may need."""
    cgroup, netem = "run as root where /sys/fs/cgroup is writable", "a kernel with CONFIG_NET_SCH_NETEM"
    known = (
        ("quotas and memory limits", able.limits, "cpus.quota, cpus.memory", cgroup),
        ("networks of stacks", able.network, "network.isolation", "run as root with iproute2"),
        ("published ports", able.port_translation, "network.publish", "apt-get install nftables"),
        ("delay and loss", able.netem, "network.delay_ms, network.loss", f"{netem}: modprobe sch_netem"),
    )
    return [Finding(what, ability.possible, False, ability.detail, key, remedy) for what, ability, key, remedy in known]


def _find_machine() -> list[Finding]:
    cpus, system = len(os.sched_getaffinity(0)), platform.system()
    cpu_note = "the generator and the stack must share one CPU" if cpus < 2 else ""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    release = f"{system} {platform.release()}"
    return [
        Finding("Linux", system == "Linux", True, release, remedy="weir reads /proc: use Linux"),
        Finding("CPUs", cpus >= 2, False, f"{cpus} available", remedy=cpu_note),
        Finding("memory", True, False, f"{memory_bytes / 1e9:.0f} GB"),
    ]


def _list_labels(needs: Iterable[tuple[Stack, Iterable[str]]]) -> list[tuple[str, str]]:
    """Returns each needed program or service with the labels of its stacks. Lists a stack with variants only once."""
    labels: dict[str, dict[str, str]] = {}
    for stack, names in needs:
        for name in names:
            labels.setdefault(name, {}).setdefault(stack.id, stack.label)
    return [(name, ", ".join(stacks.values())) for name, stacks in sorted(labels.items())]


def _find_tool(need: str, stacks: str) -> Finding:
    found = find_tool(need)
    if isinstance(found, Tool):
        return Finding(need, True, False, found.version_line or str(found.path), stacks)
    return Finding(need, False, False, found.why, stacks, _suggest_install(need))


def _suggest_install(need: str) -> str:
    tool, _, version = need.partition(">=")
    if tool in JDK_TOOLS:
        return f"apt-get install openjdk-{version or _JDK}-jdk-headless, or name another JDK in JAVA_HOME"
    newer = f"; if {tool} is older than {version}, put a newer version first on the PATH" if version else ""
    return f"{_INSTALL.get(tool, f'install {tool}')}{newer}"


def _find_service(service: Service, stacks: str) -> Finding:
    if (unmet := find_unmet_need(service)) is not None:
        return Finding(service.title, False, False, str(unmet), stacks, _suggest_remedy(service, unmet))
    return Finding(service.title, True, False, _describe_source(service), stacks)


def _suggest_remedy(service: Service, unmet: UnmetRequirement) -> str:
    match service:
        case StandbyService():
            primary = read_service(service.of)
            assert isinstance(primary, DatabaseService)
            return f"unset {primary.own_server}" if unmet.need == service.id else _suggest_remedy(primary, unmet)
        case DatabaseService():
            own = f"a server of your own: {service.own_server}=…"
            return own if unmet.need == service.id else f"{_suggest_install(unmet.need)}, or {own}"
        case _:
            return _suggest_install(unmet.need)


def _describe_source(service: Service) -> str:
    match service:
        case FrontService():
            return service.find_program() or ""
        case StandbyService():
            return f"made from the data of {service.of}"
        case DatabaseService():
            if service.own_url is not None:
                return f"the server that {service.own_server} names"
            name = f"{service.package.name} {service.package.version}"
            return f"{name}, in the cache" if is_fetched(service) else f"{service.package.tool} will fetch {name}"
        case _:
            return "part of weir-engine"


def _find_generator(tool: LoadTool) -> Finding:
    program, key = tool.find(), f'generator = "{tool.name}"'
    if program is None:
        return Finding(tool.name, False, False, "not found", key, tool.install_hint)
    return Finding(tool.name, True, False, f"{tool.version()}, {program}", key)
