"""The tree of a .jmx file: elements with their properties, and the elements below them.

JMeter saves an element and, behind it, a `hashTree` of what is below it. The file may come from anywhere: no DTD and so no entity is
taken, and neither a deep nor a huge file is more than an error.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn
from xml.parsers import expat

from weir.model.errors import UsageError

_LARGEST_BYTES = 64 * 1024 * 1024
_DEEPEST = 500
"""XML elements in one another: JMeter's own plans have four for each level of the tree."""
_PROPERTIES = ("stringProp", "intProp", "longProp", "boolProp", "floatProp", "doubleProp", "elementProp", "collectionProp")


@dataclass(slots=True)
class Node:
    """An XML element."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list["Node"] = field(default_factory=list)
    text: str = ""

    def property(self, name: str) -> "Node | None":
        """The property of this name."""
        return next((child for child in self.children if child.tag in _PROPERTIES and child.attributes.get("name") == name), None)

    def value(self, name: str, default: str = "") -> str:
        """The text of a property."""
        found = self.property(name)
        return default if found is None else found.text

    def flag(self, name: str, default: bool = False) -> bool:
        """A property that is true or false."""
        return self.value(name, "true" if default else "false").strip().lower() == "true"

    def items(self, name: str) -> list["Node"]:
        """What is in a collection."""
        found = self.property(name)
        return [] if found is None else found.children


class Argument(NamedTuple):
    """A name and a value: a variable, or a parameter of a request."""

    name: str
    value: str
    is_encoded: bool
    """Whether name and value are to be percent-encoded where they are sent."""
    equals: str
    """What stands between the two."""


def arguments(holder: Node | None) -> list[Argument]:
    """What an `Arguments` element holds."""
    if holder is None:
        return []
    return [
        Argument(
            item.value("Argument.name", item.attributes.get("name", "")),
            item.value("Argument.value"),
            item.flag("HTTPArgument.always_encode"),
            item.value("Argument.metadata", "=") if item.flag("HTTPArgument.use_equals", default=True) else "",
        )
        for item in holder.items("Arguments.arguments")
    ]


@dataclass(slots=True)
class Element:
    """An element of the test plan. Disabled ones, and what is below them, are not in the tree."""

    node: Node
    place: tuple[str, ...]
    """The names of the elements above it, the plan's first."""
    below: list["Element"]

    @property
    def kind(self) -> str:
        """What it is: `ThreadGroup`."""
        return self.node.tag

    @property
    def name(self) -> str:
        """What its author calls it."""
        return self.node.attributes.get("testname", "")

    @property
    def path(self) -> tuple[str, ...]:
        """Its place and its name."""
        return (*self.place, self.name)


def read_tree(path: Path) -> Element:
    """The test plan in a .jmx file.

    Raises:
        UsageError: the file cannot be read, is no XML, has a DTD, or is no test plan.
    """
    try:
        content = path.read_bytes() if path.stat().st_size <= _LARGEST_BYTES else None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; expected a JMeter test plan (.jmx)") from None
    if content is None:
        raise UsageError(f"{path}: found more than {_LARGEST_BYTES >> 20} MiB, expected a JMeter test plan")
    root = _Reader(path).read(content)
    tree = next((child for child in root.children if child.tag == "hashTree"), None)
    if root.tag != "jmeterTestPlan" or tree is None:
        raise UsageError(f"{path}: found <{root.tag}>, expected a JMeter test plan: <jmeterTestPlan> with a <hashTree> in it")
    plans = [element for element in _elements(tree, ()) if element.kind == "TestPlan"]
    if len(plans) != 1:
        raise UsageError(f"{path}: found {len(plans)} enabled elements TestPlan, expected one")
    return plans[0]


def _elements(tree: Node, place: tuple[str, ...]) -> Iterator[Element]:
    """The enabled elements of a `hashTree`, each with the one behind it."""
    for at, node in enumerate(tree.children):
        if node.tag == "hashTree" or node.attributes.get("enabled", "true") == "false":
            continue
        behind = tree.children[at + 1] if at + 1 < len(tree.children) else None
        element = Element(node, place, [])
        if behind is not None and behind.tag == "hashTree":
            element.below.extend(_elements(behind, element.path))
        yield element


class _Reader:
    """Builds the nodes of one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: list[Node] = []
        self._root: Node | None = None
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text

    def read(self, content: bytes) -> Node:
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as error:
            raise UsageError(f"{self._path}: not valid XML: {error}; expected a JMeter test plan (.jmx)") from None
        except (LookupError, ValueError) as error:
            # The encoding that the file names is none that Python knows.
            raise UsageError(f"{self._path}: cannot be decoded: {error}; expected UTF-8") from None
        assert self._root is not None
        return self._root

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= _DEEPEST:
            raise UsageError(f"{self._path}:{self._line}: found more than {_DEEPEST} elements in one another, expected a JMeter test plan")
        node = Node(tag, attributes, self._line)
        if self._open:
            self._open[-1].children.append(node)
        else:
            self._root = node
        self._open.append(node)

    def _end(self, _: str) -> None:
        node = self._open.pop()
        if node.children:
            # Between elements there is nothing but their indentation.
            node.text = ""

    def _text(self, text: str) -> None:
        self._open[-1].text += text

    def _doctype(self, *_: object) -> NoReturn:
        raise UsageError(f"{self._path}:{self._line}: found a DTD, expected none: JMeter saves no test plan with one")

    @property
    def _line(self) -> int:
        return self._parser.CurrentLineNumber
