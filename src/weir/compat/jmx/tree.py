"""The tree of a .jmx file: elements with their properties and their child elements.

In the file, a `hashTree` with the child elements follows each element. weir does not trust the file: weir rejects a DTD
(and so every entity), a deep tree and a huge file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn
from xml.parsers import expat

from weir.model.errors import UsageError

_LARGEST_BYTES = 64 * 1024 * 1024
_DEEPEST = 500
"""Maximum depth of XML elements. Each level of a test plan has four XML levels."""
_TYPES = ("string", "int", "long", "bool", "float", "double", "element", "collection")
_PROPERTIES = frozenset(f"{type_}Prop" for type_ in _TYPES)


@dataclass(slots=True, eq=False)
class Element:
    """An XML element: an element of the test plan, or a property of such an element."""

    kind: str
    """The XML tag, such as `ThreadGroup`."""
    attributes: dict[str, str]
    line: int
    children: list["Element"] = field(default_factory=list)
    text: str = ""
    place: tuple[str, ...] = ()
    """The names of the element's parents in the test plan, the plan first."""
    below: list["Element"] = field(default_factory=list)
    """The enabled child elements in the test plan."""

    @property
    def name(self) -> str:
        """The element's name in the test plan."""
        return self.attributes.get("testname", "")

    def find_property(self, name: str) -> "Element | None":
        named = (child for child in self.children if child.attributes.get("name") == name)
        return next((child for child in named if child.kind in _PROPERTIES), None)

    def value(self, name: str, default: str = "") -> str:
        found = self.find_property(name)
        return default if found is None else found.text

    def flag(self, name: str, default: bool = False) -> bool:
        return self.value(name, "true" if default else "false").strip().lower() == "true"

    def items(self, name: str) -> list["Element"]:
        """Returns the items of a collection property; empty without the property."""
        found = self.find_property(name)
        return [] if found is None else found.children

    def walk(self) -> Iterator["Element"]:
        """Yields the enabled elements below this element in the test plan, at all levels."""
        for below in self.below:
            yield below
            yield from below.walk()

    def has_text(self, pattern: re.Pattern[str]) -> bool:
        """Returns whether `pattern` matches any part of a property's text, at any level."""
        return any(pattern.search(child.text) or child.has_text(pattern) for child in self.children)


class Argument(NamedTuple):
    """A name and a value: a variable, or a parameter of a request."""

    name: str
    value: str
    is_encoded: bool
    """Whether JMeter percent-encodes name and value for the request (`URL Encode?`)."""
    equals: str
    """The text between name and value in a query: `=` or nothing."""


def list_arguments(holder: Element | None) -> list[Argument]:
    """Returns the arguments in an `Arguments` element; empty without the element."""
    return [
        Argument(
            item.value("Argument.name", item.attributes.get("name", "")),
            item.value("Argument.value"),
            item.flag("HTTPArgument.always_encode"),
            item.value("Argument.metadata"),
        )
        for item in ([] if holder is None else holder.items("Arguments.arguments"))
    ]


def read_tree(path: Path) -> Element:
    """Returns the enabled part of a .jmx file. Raises UsageError if the file is unreadable, is no test plan or has a
    DTD."""
    try:
        content = path.read_bytes() if path.stat().st_size <= _LARGEST_BYTES else None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; expected a JMeter test plan (.jmx)") from None
    if content is None:
        raise UsageError(f"{path}: found a file of more than {_LARGEST_BYTES >> 20} MiB, expected a JMeter test plan")
    root = _parse(path, content)
    tree = next((child for child in root.children if child.kind == "hashTree"), None)
    if root.kind != "jmeterTestPlan" or tree is None:
        raise UsageError(
            f"{path}: found <{root.kind}>, expected a JMeter test plan: <jmeterTestPlan> that contains a <hashTree>"
        )
    plans = [element for element in _list_enabled(tree, ()) if element.kind == "TestPlan"]
    if len(plans) != 1:
        raise UsageError(f"{path}: found {len(plans)} enabled TestPlan elements, expected one")
    return plans[0]


def _list_enabled(tree: Element, place: tuple[str, ...]) -> Iterator[Element]:
    """Yields the enabled elements of a `hashTree`, with their child elements."""
    for element, behind in zip(tree.children, [*tree.children[1:], None], strict=False):
        if element.kind != "hashTree" and element.attributes.get("enabled") != "false":
            element.place = place
            if behind is not None and behind.kind == "hashTree":
                element.below = list(_list_enabled(behind, (*place, element.name)))
            yield element


def _parse(path: Path, content: bytes) -> Element:
    parser = expat.ParserCreate()
    file = Element("", {}, 0)
    open_elements = [file]

    def start(tag: str, attributes: dict[str, str]) -> None:
        line = parser.CurrentLineNumber
        if len(open_elements) > _DEEPEST:
            raise UsageError(f"{path}:{line}: found over {_DEEPEST} levels of elements, expected fewer")
        element = Element(tag, attributes, line)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_: str) -> None:
        element = open_elements.pop()
        if element.children:
            # The text between elements is indentation.
            element.text = ""

    def add_text(text: str) -> None:
        open_elements[-1].text += text

    def refuse_doctype(*_: object) -> NoReturn:
        line = parser.CurrentLineNumber
        raise UsageError(f"{path}:{line}: found a DTD, expected none: JMeter saves test plans without one")

    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = add_text, refuse_doctype
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise UsageError(f"{path}: not valid XML: {error}; expected a JMeter test plan (.jmx)") from None
    except (LookupError, ValueError) as error:
        # Python does not know the encoding that the file names.
        raise UsageError(f"{path}: cannot be decoded: {error}; expected UTF-8") from None
    return file.children[0]
