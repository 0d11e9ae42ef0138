"""The scope of a sampler: the elements that apply to the sampler, and the values for references in the sampler.

An element below a sampler applies only to that sampler. Every other element applies to all samplers below its parent.
Variables and properties have their values before the load.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from weir.compat.jmx.references import Piece, Placeholder, Reference, Text, join_texts, parse, write_original
from weir.compat.jmx.tree import Element
from weir.model.errors import UsageError

_SCOPED = frozenset(["HeaderManager", "CookieManager", "ConstantTimer", "UniformRandomTimer", "ResponseAssertion"])

Report = Callable[[Element, str], None]
"""Reports an unsupported element with the reason."""


def is_scoped(element: Element) -> bool:
    """Returns whether an element may apply to samplers. Request defaults apply only if they are for HTTP."""
    is_http = element.attributes.get("guiclass") == "HttpDefaultsGui"
    return element.kind in _SCOPED or (element.kind == "ConfigTestElement" and is_http)


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope at one place in a test plan."""

    report: Report
    properties: Mapping[str, str]
    variables: dict[str, str] = field(default_factory=dict)
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """A dict from a variable of a data set to the name of the data set and the column with the values."""
    elements: tuple[Element, ...] = ()
    """The elements that apply, the nearest first."""

    def within(self, elements: Iterable[Element]) -> "Scope":
        """Adds those of `elements` that apply to samplers. Returns the new scope."""
        return replace(self, elements=(*filter(is_scoped, elements), *self.elements))

    def find(self, *kinds: str) -> list[Element]:
        """Returns the elements of the given kinds, the nearest first."""
        return [element for element in self.elements if element.kind in kinds]

    def resolve(self, element: Element, text: str | Iterable[str | Reference]) -> Text:
        """Resolves the references in a text of a request. Reports each unsupported reference for `element`. As in
        JMeter, a reference to an unknown variable stays unchanged."""
        pieces = parse(text) if isinstance(text, str) else text
        return join_texts([piece if isinstance(piece, str) else self._resolve(element, piece)] for piece in pieces)

    def resolve_fixed(self, element: Element, text: str | Iterable[str | Reference]) -> str:
        """Resolves a text that must be known before the load. Reports each value that changes during the load."""
        found = self.resolve(element, text)
        for piece in found:
            if isinstance(piece, Placeholder):
                changes = "found a value that changes from request to request, expected a fixed value"
                self.report(element, f"{piece.written}: {changes}")
        return write_original(found)

    def setting(self, element: Element, name: str) -> str:
        """Returns a property without white space at its ends. The value must be known before the load."""
        return self.resolve_fixed(element, element.value(name)).strip()

    def number(self, element: Element, name: str, default: str, *, holder: Element | None = None) -> float:
        """Returns the number in a property of `holder` (default: `element`). Error messages name `element`."""
        text = self.resolve_fixed(element, (holder or element).value(name, default)).strip()
        return parse_number(element, text or default, name)

    def _resolve(self, element: Element, reference: Reference) -> Piece:
        name, _, written = reference
        if not name.startswith("__"):
            if name in self.columns:
                return Placeholder("csv {}.{}".format(*self.columns[name]), written, self.columns[name])
            return self.variables.get(name, written)
        match name, [self.resolve_fixed(element, argument).strip() for argument in reference.arguments]:
            case "__P", [key]:
                return self.properties.get(key, "1")
            case "__P", [key, default]:
                return self.properties.get(key, default)
            case "__property", [key] | [key, ""]:
                return self.properties.get(key, key)
            case "__property", [key, "", default]:
                return self.properties.get(key, default)
            case "__V", [key] if key not in self.columns:
                return self.variables.get(key, key)
            case ("__Random", [low, high]) | ("__Random", [low, high, ""]) if _is_range(low, high):
                return Placeholder(f"int {int(low)} {int(high)}", written)
            case "__UUID", [] | [""]:
                return Placeholder("uuid", written)
            case "__counter", _:
                problem = "counts its calls, but weir's {{seq}} counts the thread group's requests from 0"
                self.report(element, f"{written}: {problem}")
                return Placeholder("seq", written)
        self.report(element, f"found {written}: weir's templates have no such placeholder")
        return written


def _is_range(low: str, high: str) -> bool:
    try:
        return -(2**63) <= int(low) <= int(high) < 2**63
    except ValueError:
        return False


def parse_number(element: Element, text: str, name: str) -> float:
    """Parses the number in the property `name`: -1, or at least 0. Raises UsageError: `text` is no such number."""
    try:
        found = float(text)
        if 0 <= found < 1e15 or found == -1:
            return found
    except ValueError:
        pass
    raise UsageError(f"line {element.line}: {element.kind} {element.name!r}: {name}: found {text!r}, expected a number")
