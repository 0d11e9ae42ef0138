"""Finds the plugins that a JMeter plan needs, and the command line that installs them."""

import re
import zipfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from weir.model.errors import UsageError

_COMMON = "kg.apc:jmeter-plugins-cmn-jmeter"
_PLUGINS = {
    "kg.apc.jmeter.threads.": ("kg.apc:jmeter-plugins-casutg", _COMMON),
    "com.blazemeter.jmeter.threads.": ("kg.apc:jmeter-plugins-casutg", _COMMON),
    "com.blazemeter.jmeter.control.": ("kg.apc:jmeter-plugins-casutg", _COMMON),
    "com.blazemeter.jmeter.controller.": ("com.blazemeter:jmeter-parallel",),
    "com.blazemeter.jmeter.RandomCSV": ("com.blazemeter:jmeter-plugins-random-csv-data-set",),
    "kg.apc.jmeter.timers.": ("kg.apc:jmeter-plugins-tst", _COMMON),
    "kg.apc.jmeter.samplers.DummySampler": ("kg.apc:jmeter-plugins-dummy", _COMMON),
    "kg.apc.jmeter.modifiers.Dummy": ("kg.apc:jmeter-plugins-dummy", _COMMON),
    "kg.apc.jmeter.control.": ("kg.apc:jmeter-plugins-prmctl", _COMMON),
    "kg.apc.jmeter.perfmon.": ("kg.apc:jmeter-plugins-perfmon", _COMMON),
    "kg.apc.": (_COMMON,),
    "eu.luminis.jmeter.": ("net.luminis.jmeter:jmeter-websocket-samplers",),
}
"""A dict from the beginning of a class name to the Maven artifacts with the class."""
_COPY = "mvn -q org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_NAME = re.compile(r"[a-zA-Z]\w*(?:\.\w+)+")


def require_plugins(plan: Path, program: Path) -> None:
    """Raises UsageError with the missing classes if the JMeter at `program` lacks a class that the plan needs. Does
    nothing if weir cannot read the plan: JMeter then reports the error."""
    home = program.resolve().parent.parent
    extensions = home / "lib" / "ext"
    try:
        root = ElementTree.parse(plan).getroot()
        aliases = _read_aliases(home / "bin" / "saveservice.properties")
    except (OSError, ElementTree.ParseError, ValueError):
        return
    tags = Counter(element.tag for tree in root.iter("hashTree") for element in tree if element.tag != "hashTree")
    needed = Counter({aliases.get(tag, tag): count for tag, count in tags.items()})
    missing = {name: count for name, count in needed.items() if _NAME.fullmatch(name)}
    # Most plans need only JMeter's own elements, which are in these files.
    for folder in (extensions, home / "lib"):
        for jar in sorted(folder.glob("*.jar")) if missing else ():
            with zipfile.ZipFile(jar) as archive:
                classes = set(archive.namelist())
            missing = {
                name: count for name, count in missing.items() if f"{name.replace('.', '/')}.class" not in classes
            }
    if not missing:
        return
    artifacts: dict[str, None] = {}
    for name in missing:
        found = next((of for start, of in _PLUGINS.items() if name.startswith(start)), ())
        artifacts |= dict.fromkeys(found)
    listed = "\n".join(f"  {name} ({count} element{'s' * (count > 1)})" for name, count in missing.items())
    copies = [f"{_COPY} -Dartifact={one}:LATEST -DoutputDirectory={extensions}" for one in artifacts]
    hint = " && ".join(copies) or f"copy the jars of the plugin into {extensions}"
    raise UsageError(f"{plan}: needs JMeter plugins that are not installed:\n{listed}", hint=hint)


def _read_aliases(path: Path) -> dict[str, str]:
    """Returns the class of each short name that plans use for elements."""
    pairs = (line.partition("=") for line in path.read_text().splitlines() if not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs if value}
