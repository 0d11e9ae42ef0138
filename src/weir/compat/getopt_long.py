"""Command lines as GNU's `getopt_long` reads them: flags after arguments, `-Lc5`, `--name=value`, names cut short, `--` before arguments.

Not Python's `getopt`, which reads all flags before it gives one: a tool that stops at the first wrong value says nothing of later ones, and
its own sentences about a flag are part of what scripts and people see.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


class OptionError(Exception):
    """A flag that is not there, or lacks its value. The text is getopt's line, without the program's name."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a tool takes.

    Args:
        with_value: letters of flags that take a value.
        alone: letters of flags that take none.
        long: long names, each with the letter that it stands for.
    """

    with_value: str
    alone: str
    long: Mapping[str, str]

    def read(self, words: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The flags as they come: each its letter and its value, `` where it takes none; then every argument as `("", argument)`.

        Raises:
            OptionError: a flag is wrong. Those before it have been given by then.
        """
        arguments: list[str] = []
        left = iter(words)
        for word in left:
            if word == "--":
                arguments += left
            elif word.startswith("--"):
                yield self._long(word[2:], left)
            elif word.startswith("-") and word != "-":
                yield from self._short(word[1:], left)
            else:
                arguments.append(word)
        yield from (("", argument) for argument in arguments)

    def _short(self, letters: str, left: Iterator[str]) -> Iterator[tuple[str, str]]:
        for at, letter in enumerate(letters):
            if letter in self.alone:
                yield letter, ""
            elif letter in self.with_value:
                value = letters[at + 1 :] or next(left, None)
                if value is None:
                    raise OptionError(f"option requires an argument -- '{letter}'")
                yield letter, value
                return
            else:
                raise OptionError(f"invalid option -- '{letter}'")

    def _long(self, text: str, left: Iterator[str]) -> tuple[str, str]:
        start, equals, value = text.partition("=")
        found = [start] if start in self.long else [name for name in self.long if name.startswith(start)]
        if not found:
            raise OptionError(f"unrecognized option '--{text}'")
        if len({self.long[name] for name in found}) > 1:
            raise OptionError(f"option '--{text}' is ambiguous; possibilities: " + " ".join(f"'--{name}'" for name in found))
        name = found[0]
        letter = self.long[name]
        if letter not in self.with_value:
            if equals:
                raise OptionError(f"option '--{name}' doesn't allow an argument")
            return letter, ""
        given = value if equals else next(left, None)
        if given is None:
            raise OptionError(f"option '--{name}' requires an argument")
        return letter, given
