"""Finds the tools that stacks need, and prepares the environment variables of builds and stacks.

A need is a command such as `mvn`, or a command with a minimum version such as `java>=21`. weir looks for commands on
the PATH. weir looks for a sufficient JDK in `JAVA_HOME`, then on the PATH, then in the usual folders of JDKs. In these
folders, weir takes the oldest sufficient JDK, so that stacks with the same needs run on the same JDK.
"""

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from weir.model.requirements import UnmetRequirement
from weir.paths import find_node_tools

NEED = re.compile(r"([A-Za-z][\w.+-]*?)(?:>=(\d+(?:\.\d+)*))?")
"""Pattern of a need: a tool, and optionally a minimum version."""
JDK_TOOLS = frozenset({"java", "javac"})
_JDK_FOLDERS = ("/usr/lib/jvm", "~/.sdkman/candidates/java", "~/.jdks")
"""Folders in which Debian, SDKMAN and IntelliJ install JDKs."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""Pattern of escape sequences for text styles. Maven prints these sequences even into pipes."""
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_RUNTIME = re.compile(r"java|node|python[\d.]*t?")
"""Matches the program names of runtimes, such as `python3.12`."""
_VERSION_ARGUMENTS = {"go": "version"}
_TIMEOUT_S = 20.0
INHERITED = ("HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "RUSTUP_HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY")
"""Environment variables that builds and stacks inherit from weir, in addition to `http_proxy` and similar variables."""
INHERITED_PREFIXES = ("UV_", "PIP_", "SSL_", "NPM_", "npm_", "MAVEN_", "CARGO_")
"""Builds and stacks also inherit environment variables with these prefixes."""


@dataclass(frozen=True, slots=True)
class Tool:
    """An installed tool."""

    path: Path

    @property
    def version_line(self) -> str:
        """The first line that the tool prints about its version."""
        return read_first_line(str(self.path), _VERSION_ARGUMENTS.get(self.path.name, "--version")) or ""

    @property
    def version(self) -> tuple[int, ...]:
        """The version number in `version_line`; empty if there is none."""
        found = _VERSION.search(self.version_line)
        return _parse_version(found.group()) if found else ()


@dataclass(frozen=True, slots=True)
class _Jdk:
    home: Path | None
    """Folder of the JDK; None: the JDK on the PATH."""

    def tool(self, name: str) -> Tool | None:
        return _find_tool(name, build_search_path() if self.home is None else str(self.home / "bin"))


def find_tool(need: str) -> Tool | UnmetRequirement:
    """Returns the tool that meets a need, or the unmet requirement with the reason."""
    name, at_least = _parse_need(need)
    if name in JDK_TOOLS:
        jdk = _find_jdk((need,))
        tool = jdk.tool(name) if jdk else next((found for each in _list_jdks() if (found := each.tool(name))), None)
    else:
        tool = _find_tool(name, build_search_path())
    if tool is None:
        return UnmetRequirement(need)
    if _is_sufficient(tool, at_least):
        return tool
    return UnmetRequirement(need, f"found {'.'.join(map(str, tool.version)) or 'no version'} ({tool.path})")


def find_unmet_needs(needs: Sequence[str]) -> list[UnmetRequirement]:
    """Returns the needs in `needs` that this machine does not meet, in the same order."""
    return [found for need in dict.fromkeys(needs) if isinstance(found := find_tool(need), UnmetRequirement)]


def build_base_environment(needs: Sequence[str] = ()) -> dict[str, str]:
    """Returns the environment variables that builds and stacks inherit. With these variables, programs run and reach a
    package index. The variables do not tune a server."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED or name.startswith(INHERITED_PREFIXES) or name.lower().endswith("_proxy")
    }
    environment["PATH"] = build_search_path()
    jdk = _find_jdk(_select_jdk_needs(needs))
    if jdk is not None and jdk.home is not None:
        environment["PATH"] = os.pathsep.join([str(jdk.home / "bin"), environment["PATH"]])
        environment["JAVA_HOME"] = str(jdk.home)
    return environment


def find_jdk_version(needs: Sequence[str]) -> str | None:
    """Returns the version line of the JDK that meets the needs. None if no JDK is needed, or if none is sufficient."""
    of_jdk = _select_jdk_needs(needs)
    jdk = _find_jdk(of_jdk) if of_jdk else None
    java = jdk.tool("java") if jdk else None
    return None if java is None else java.version_line


def build_search_path() -> str:
    """Returns the PATH of builds and stacks: the user's PATH, then the folders of tools that come with weir."""
    tools = find_node_tools()
    beside = [sysconfig.get_path("scripts"), *([str(tools.folder)] if tools else [])]
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *beside])


@cache
def read_first_line(*command: str) -> str | None:
    """Returns the first line of a command's output; None if the command is missing, hangs or prints nothing. Cached."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = _COLOUR.sub("", done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines else None


def detect_runtime(pid: int) -> str:
    """Returns the version line of a process's runtime (`Python 3.12.3`); empty if unknown or the process ended."""
    try:
        program = Path(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""
    line = read_first_line(str(program), "--version") if _RUNTIME.fullmatch(program.name) else None
    # Node prints only the version number.
    return "" if line is None else line if " " in line else f"{program.name} {line}"


def _select_jdk_needs(needs: Sequence[str]) -> list[str]:
    return [need for need in needs if _parse_need(need)[0] in JDK_TOOLS]


def _find_jdk(needs: Sequence[str]) -> _Jdk | None:
    """Returns the first JDK with tools that meet all the needs; None if there is none."""
    parsed = [_parse_need(need) for need in needs]
    for jdk in _list_jdks():
        tools = [(jdk.tool(name), at_least) for name, at_least in parsed]
        if all(tool is not None and _is_sufficient(tool, at_least) for tool, at_least in tools):
            return jdk
    return None


def _list_jdks() -> Iterator[_Jdk]:
    if named := os.environ.get("JAVA_HOME"):
        yield _Jdk(Path(named))
    yield _Jdk(None)
    programs = (path for root in _JDK_FOLDERS for path in Path(root).expanduser().glob("*/bin/java"))
    homes = {path.parent.parent.resolve() for path in programs}
    yield from map(_Jdk, sorted(homes, key=lambda home: (Tool(home / "bin" / "java").version, str(home))))


def _find_tool(name: str, path: str) -> Tool | None:
    where = shutil.which(name, path=path)
    return Tool(Path(where)) if where else None


def _is_sufficient(tool: Tool, at_least: tuple[int, ...]) -> bool:
    if not at_least:
        return True
    version = tool.version
    # 17 equals 17.0.0.
    return bool(version) and (*version, *(0,) * len(at_least)) >= at_least


def _parse_need(need: str) -> tuple[str, tuple[int, ...]]:
    match = NEED.fullmatch(need)
    assert match is not None, f"found the need {need!r}, expected a need that the manifest's check accepts"
    return match[1], _parse_version(match[2]) if match[2] else ()


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
