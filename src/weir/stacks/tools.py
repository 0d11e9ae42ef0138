"""The tools that stacks need: which are there, in which version, and the environment in which a build or a stack finds them.

A need is a tool by its command's name, `mvn`, or one that is new enough, `java>=21`. What the PATH finds counts. Of JDKs a machine often
holds several: the first that suffices is taken, in the order `JAVA_HOME`, the PATH, where JDKs are installed; of these the oldest, so that
stacks with the same needs run on the same one.
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

from weir.model.needs import Unmet
from weir.places import node_tools

NEED = re.compile(r"([A-Za-z][\w.+-]*?)(?:>=(\d+(?:\.\d+)*))?")
"""A tool, and the oldest version that will do."""
JDK_TOOLS = frozenset({"java", "javac"})
_JDK_FOLDERS = ("/usr/lib/jvm", "~/.sdkman/candidates/java", "~/.jdks")
"""Where Debian, SDKMAN and IntelliJ put JDKs, a folder each."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""Maven prints in bold, into pipes as well."""
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_RUNTIME = re.compile(r"java|node|python[\d.]*t?")
"""Programs that run others."""
_ASK_VERSION = {"go": "version"}
_ANSWER_S = 20.0
PASSED_ON = ("HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "RUSTUP_HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY")
"""Variables that builds and stacks get of weir's own environment, beside those that end in `_proxy`."""
PASSED_ON_PREFIXES = ("UV_", "PIP_", "SSL_", "NPM_", "npm_", "MAVEN_", "CARGO_")
"""And those that begin so."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that is there."""

    path: Path

    @property
    def said(self) -> str:
        """The first line of what it says of its version."""
        return first_line(str(self.path), _ASK_VERSION.get(self.path.name, "--version")) or ""

    @property
    def version(self) -> tuple[int, ...]:
        """The first number that it says; empty where it says none."""
        found = _VERSION.search(self.said)
        return _numbers(found.group()) if found else ()


@dataclass(frozen=True, slots=True)
class _Jdk:
    home: Path | None
    """Its folder; None for the one that the PATH finds."""

    def tool(self, name: str) -> Tool | None:
        return _tool(name, search_path() if self.home is None else str(self.home / "bin"))


def find_tool(need: str) -> Tool | Unmet:
    """The tool that meets a need, or why there is none.

    >>> find_tool("no-such-tool>=3")
    Unmet(need='no-such-tool>=3', why='not found on the PATH')
    """
    name, at_least = _parsed(need)
    if name in JDK_TOOLS:
        jdk = _jdk((need,))
        tool = jdk.tool(name) if jdk else next((found for each in _jdks() if (found := each.tool(name))), None)
    else:
        tool = _tool(name, search_path())
    if tool is None:
        return Unmet(need)
    if _suffices(tool, at_least):
        return tool
    return Unmet(need, f"found {'.'.join(map(str, tool.version)) or 'no version'} ({tool.path})")


def unmet_needs(needs: Sequence[str]) -> list[Unmet]:
    """Those that nothing here meets, in their order."""
    return [found for need in dict.fromkeys(needs) if isinstance(found := find_tool(need), Unmet)]


def base_environment(needs: Sequence[str] = ()) -> dict[str, str]:
    """What a build and a stack get of weir's own environment: enough to run, to find what they need and to reach a package index; nothing
    that tunes a server."""
    names = [name for name in os.environ if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES) or name.lower().endswith("_proxy")]
    return {**{name: os.environ[name] for name in names}, **_tool_environment(needs)}


def jdk_version(needs: Sequence[str]) -> str | None:
    """What the JDK that meets the needs of one says of its version; None where none is needed, or none is there."""
    of_jdk = _of_jdk(needs)
    jdk = _jdk(of_jdk) if of_jdk else None
    java = jdk.tool("java") if jdk else None
    return None if java is None else java.said


def search_path() -> str:
    """The PATH of builds and stacks: the user's, then what was installed beside weir (uv, and Node where the machine has none)."""
    tools = node_tools()
    beside = [sysconfig.get_path("scripts"), *([str(tools.folder)] if tools else [])]
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *beside])


@cache
def first_line(*command: str) -> str | None:
    """The first line that a command prints (`java --version` and its like); None where it is not there or does not answer.

    A command is run once in a process's life.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = _COLOUR.sub("", done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines else None


def runtime_of(pid: int) -> str:
    """What runs a process, in its own words: `openjdk 17.0.15 2025-04-15`, `Python 3.12.3`, `node v22.14.0`.

    Empty of a program that runs by itself, which is not asked: it may be a server that knows no `--version`; and of a process that is gone.
    """
    try:
        program = Path(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""
    said = first_line(str(program), "--version") if _RUNTIME.fullmatch(program.name) else None
    # Node says its number alone.
    return "" if said is None else said if " " in said else f"{program.name} {said}"


def _tool_environment(needs: Sequence[str]) -> dict[str, str]:
    jdk = _jdk(_of_jdk(needs))
    if jdk is None or jdk.home is None:
        return {"PATH": search_path()}
    return {"PATH": os.pathsep.join([str(jdk.home / "bin"), search_path()]), "JAVA_HOME": str(jdk.home)}


def _of_jdk(needs: Sequence[str]) -> list[str]:
    return [need for need in needs if _parsed(need)[0] in JDK_TOOLS]


def _jdk(needs: Sequence[str]) -> _Jdk | None:
    """The first JDK that meets all the needs, which are of its tools; None where there is none."""
    parsed = [_parsed(need) for need in needs]
    for jdk in _jdks():
        tools = [(jdk.tool(name), at_least) for name, at_least in parsed]
        if all(tool is not None and _suffices(tool, at_least) for tool, at_least in tools):
            return jdk
    return None


def _jdks() -> Iterator[_Jdk]:
    named = os.environ.get("JAVA_HOME")
    if named:
        yield _Jdk(Path(named))
    yield _Jdk(None)
    homes = {path.parent.parent.resolve() for root in _JDK_FOLDERS for path in Path(root).expanduser().glob("*/bin/java")}
    yield from sorted(map(_Jdk, homes), key=lambda jdk: (tool.version if (tool := jdk.tool("java")) else (), str(jdk.home)))


def _tool(name: str, path: str) -> Tool | None:
    where = shutil.which(name, path=path)
    return Tool(Path(where)) if where else None


def _suffices(tool: Tool, at_least: tuple[int, ...]) -> bool:
    if not at_least:
        return True
    version = tool.version
    # 17 is 17.0.0.
    return bool(version) and (*version, *(0,) * len(at_least)) >= at_least


def _parsed(need: str) -> tuple[str, tuple[int, ...]]:
    match = NEED.fullmatch(need)
    assert match is not None, f"{need!r} was let through by the manifest"
    return match[1], _numbers(match[2]) if match[2] else ()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
