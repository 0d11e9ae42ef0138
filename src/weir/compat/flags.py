"""Tables of other tools' flags, and a parser for the tools' command lines. wrk, wrk2 and ab accept several flags and a
value in one word (`-kc100`). hey accepts Go's forms (`-c=100`, `--c 100`)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import SplitResult, urlsplit

from weir.model.errors import InvalidValueError, UsageError


class ToolExit(Exception):  # noqa: N818 - help and versions are no errors
    """Raised for a flag such as `-h`: weir prints `text` on standard output, exits with `code`, and runs no load."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


class ToolError(UsageError):
    """Raised if a front end cannot start its load. `code` is the tool's exit code for the error."""

    def __init__(self, message: str, *, hint: str, code: int) -> None:
        super().__init__(message, hint=hint)
        self.code = code


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag of a tool."""

    name: str
    """The attribute with the flag's value in the result of `ToolFlags.parse`."""
    spellings: str
    """All forms of the flag, separated by spaces, such as `-c --connections`."""
    parse: Callable[[str], Any] | None
    """Parses the flag's value, or raises `InvalidValueError`. None: the flag takes no value."""
    default: Any
    """The value if the command line lacks the flag. If the default is a list, the flag may be repeated."""
    help: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFlags:
    """The flags of one tool, and the tool's rules for a command line."""

    tool: str
    example: str
    flags: tuple[Flag, ...]
    instead: Mapping[str, str]
    """Advice on what to use in weir. Each key is one unsupported flag, or several with spaces between them."""
    version: str
    """The tool's name and version, in the form that scripts expect."""
    version_flags: tuple[str, ...] = ()
    version_code: int = 0
    wrong_code: int
    """The tool's exit code for invalid values."""
    help_code: int | None = None
    """The tool's exit code after `-h`. None: `wrong_code`."""
    unreadable_code: int | None = None
    """The tool's exit code for an unknown flag or a malformed value. None: `wrong_code`."""
    is_go: bool = False
    flags_follow_url: bool = False
    default_scheme: str = ""
    """The scheme that the tool adds to a URL without a scheme. Empty: the tool requires a scheme."""

    def parse(self, words: Sequence[str]) -> SimpleNamespace:
        """Returns the values of the flags, the `url`, the words after the URL (`arguments`), and the `order` of flags.
        Raises ToolError if the command line is invalid or has an unsupported flag, ToolExit if it asks for help."""
        known = {spelling: flag for flag in self.flags for spelling in flag.spellings.split()}
        values: dict[str, Any] = {flag.name: flag.default for flag in self.flags}
        order: list[str] = []
        arguments: list[str] = []
        left = list(words)
        while left:
            word = left.pop(0)
            if word.startswith("-") and word not in ("-", "--"):
                spelling, attached = self._split(word)
                flag = known.get(spelling)
                if flag is None:
                    raise self._explain(spelling)
                value = self._read_value(flag, spelling, attached, left)
                values[flag.name] = [*values[flag.name], value] if isinstance(flag.default, list) else value
                order.append(flag.name)
                continue
            arguments += [] if word == "--" else [word]
            if word == "--" or not self.flags_follow_url:
                arguments += left
                break
        url, *rest = arguments or [""]
        return SimpleNamespace(**values, url=self._parse_url(url), arguments=rest, order=order)

    def reject(self, message: str, *, hint: str = "", code: int | None = None) -> ToolError:
        """Returns the error for an invalid command line. Default hint: `weir TOOL -h`. Default code: `wrong_code`."""
        return ToolError(message, hint=hint or f"weir {self.tool} -h", code=self.wrong_code if code is None else code)

    def read_file(self, spelling: str, path: str) -> bytes:
        """Returns the content of the file that a flag names. Raises ToolError if the file cannot be read."""
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise self.reject(f"{spelling}: {path}: cannot be read: {error.strerror}", code=1) from None

    def _split(self, word: str) -> tuple[str, str | None]:
        """Splits a word such as `-c100` into the flag, in the table's spelling, and the value (None if missing)."""
        if self.is_go or word.startswith("--"):
            spelling, equals, value = word.partition("=")
            return f"-{spelling.lstrip('-')}" if self.is_go else spelling, value if equals else None
        return word[:2], word[2:] or None

    def _explain(self, spelling: str) -> Exception:
        """Returns the exception for a flag that `flags` lacks: help, version or an error."""
        if spelling in ("-h", "--help", "-help"):
            return ToolExit(self._format_help(), self.wrong_code if self.help_code is None else self.help_code)
        if spelling in self.version_flags:
            # Imported late, because reading the package's metadata is slow.
            from weir import __version__

            return ToolExit(f"{self.version} [weir {__version__}]\n", self.version_code)
        if instead := next((way for spellings, way in self.instead.items() if spelling in spellings.split()), ""):
            found = f"{spelling}: weir does not support this flag"
            return self.reject(found, hint=instead, code=self.unreadable_code)
        return self.reject(f"found {spelling}, expected a flag of {self.tool}", code=self.unreadable_code)

    def _read_value(self, flag: Flag, spelling: str, attached: str | None, left: list[str]) -> Any:
        """Returns the value of a flag: `attached`, or the first word in `left`. Removes that word from `left`."""
        if flag.parse is None:
            if attached is not None and not self.is_go and not spelling.startswith("--"):
                left.insert(0, f"-{attached}")
            elif attached not in (None, "true", "false"):
                raise self.reject(f"{spelling}: found {attached!r}, expected no value", code=self.unreadable_code)
            return attached != "false"
        if attached is None and not left:
            raise self.reject(f"{spelling}: found no value, expected a value after the flag", code=self.unreadable_code)
        text = left.pop(0) if attached is None else attached
        try:
            return flag.parse(text)
        except InvalidValueError as error:
            raise self.reject(error.at(spelling).message, code=self.unreadable_code) from None

    def _parse_url(self, text: str) -> SplitResult:
        try:
            url = urlsplit(text if "://" in text or not self.default_scheme else f"{self.default_scheme}://{text}")
            if url.scheme in ("http", "https") and url.hostname and url.port != 0:
                return url
        except ValueError:
            pass
        raise self.reject(f"URL: found {text!r}, expected a URL such as http://127.0.0.1:8000/", hint=self.example)

    def _format_help(self) -> str:
        rows = [(flag.spellings, flag.help) for flag in self.flags]
        rows += [(spellings, f"not supported. Instead: {way}") for spellings, way in self.instead.items()]
        lines = [f"  {', '.join(spellings.split()):<22} {text}" for spellings, text in rows]
        return "\n".join([f"Usage: weir {self.tool} [FLAG]... URL", "", *lines, "", f"Example: {self.example}", ""])


def match_value(pattern: str, expected: str, convert: Callable[[str], Any] = str) -> Callable[[str], Any]:
    """Returns a parser for values that match `pattern`. `expected` describes the values in the parser's errors."""

    def parse(text: str) -> Any:
        if not re.fullmatch(pattern, text):
            raise InvalidValueError(text, expected)
        return convert(text)

    return parse


parse_whole = match_value(r"[+-]?[0-9]+", "a whole number such as 100", int)


def format_authority(url: SplitResult) -> str:
    """Returns the host and the port of a URL, without credentials."""
    return url.netloc.rpartition("@")[2]


def format_path(url: SplitResult) -> str:
    """Returns the path and query of a URL."""
    return (url.path or "/") + (f"?{url.query}" if url.query else "")
