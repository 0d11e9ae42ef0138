"""Reads the scripts of a Postman collection without running them.

A script may set a variable to a part of the response, as in `pm.environment.set("token", pm.response.json().token)`, or
to a constant. weir reads both. For any other variable, only the script knows the value.
"""

import re
from dataclasses import dataclass, field

_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'])//[^\n]*", re.DOTALL)
_JSON = r"(?:pm\.response\.json\(\s*\)|JSON\.parse\(\s*(?:responseBody|pm\.response\.text\(\s*\))\s*\))"
_PATH = r"(?:\??\.\w+|(?:\?\.)?\[\s*(?:\d+|'[^']*'|\"[^\"]*\")\s*\])*"
_ALIAS = re.compile(rf"(?:var|let|const)?\s*\b(\w+)\s*=\s*({_JSON}|\w+)({_PATH})\s*(?:;|\n|$)")
_SET = re.compile(
    r"(?:pm\.(?:environment|collectionVariables|globals|variables)\.set"
    r"|postman\.set(?:Environment|Global)Variable)\(\s*(['\"])(?P<name>[^'\"]+)\1\s*,\s*"
    rf"(?:(?P<base>{_JSON}|\w+)(?P<path>{_PATH})\s*\)|(['\"])(?P<text>[^'\"]*)\5\s*\))?"
)
_TEST = re.compile(r"\s*(?:;|\{|\}|\(|\))*\s*")
_PART = re.compile(r"\.(\w+)|\[\s*(?:(\d+)|'([^']*)'|\"([^\"]*)\")\s*\]")


@dataclass(slots=True)
class Script:
    """The variables that a script sets."""

    pointers: dict[str, str] = field(default_factory=dict)
    """A dict from variable to JSON pointer in the response."""
    constants: dict[str, str] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    """The variables with values that only the script knows."""
    does_more: bool = False
    """Whether the script also has statements that weir does not convert, such as tests."""


def read_script(text: str) -> Script:
    """Returns the variables that a script sets."""
    text = _COMMENT.sub("", text)
    script = Script()
    aliases: dict[str, str] = {}
    for match in _ALIAS.finditer(text):
        base = "" if re.fullmatch(_JSON, match[2]) else aliases.get(match[2])
        if base is not None:
            aliases[match[1]] = base + _to_pointer(match[3])
    for match in _SET.finditer(text):
        name, base, number = match["name"], match["base"], (match["base"] or "").isdigit()
        before = "" if base and re.fullmatch(_JSON, base) else aliases.get(base or "")
        if before is not None:
            script.pointers[name] = before + _to_pointer(match["path"])
        elif match["text"] is not None or number:
            script.constants[name] = base if number else match["text"]
        else:
            script.unknown.add(name)
    rest = _SET.sub("", _ALIAS.sub("", text))
    script.does_more = bool(script.unknown or _TEST.sub("", rest))
    return script


def _to_pointer(path: str) -> str:
    parts = ("".join(filter(None, match)) for match in _PART.findall(path))
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts)
