"""The scope of a sampler: the elements that apply to the sampler, and the values for the sampler's references.

An element below a sampler applies only to that sampler. Every other element applies to all samplers below its parent.
Variables and properties have their values before the load.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weir.compat.jmx.references import Piece, Placeholder, Reference, Text, join_texts, parse, write_original
from weir.compat.jmx.test_plan import DataSet
from weir.compat.jmx.tree import Element

_SCOPED = frozenset(["HeaderManager", "CookieManager", "ConstantTimer", "UniformRandomTimer", "ResponseAssertion"])

Report = Callable[[Element, str, str], None]
"""Adds a complaint about an element. Arguments: the element, and the complaint's `why` and `what`."""


def is_scoped(element: Element) -> bool:
    """Returns whether an element may apply to samplers. Request defaults apply only if they are for HTTP."""
    is_http = element.attributes.get("guiclass") == "HttpDefaultsGui"
    return element.kind in _SCOPED or (element.kind == "ConfigTestElement" and is_http)


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope at one position in a test plan."""

    add_complaint: Report
    properties: Mapping[str, str]
    root: Element
    """The test plan."""
    variables: dict[str, str] = field(default_factory=dict)
    explanations: dict[str, str] = field(default_factory=dict)
    """Explanations for variables without a value, by name."""
    data_sets: Sequence[DataSet] = ()
    elements: tuple[Element, ...] = ()
    """The elements that apply, the nearest first."""

    def report(self, element: Element, why: str, what: str = "") -> None:
        """Adds a complaint about an element. `what`: the subject; default: the element's kind."""
        self.add_complaint(element, why, what or element.kind)

    def within(self, elements: Iterable[Element]) -> "Scope":
        """Returns a scope with the elements of this scope and those of `elements` that apply to samplers."""
        return replace(self, elements=(*filter(is_scoped, elements), *self.elements))

    def find(self, *kinds: str) -> list[Element]:
        """Returns the elements of the given kinds, the nearest first."""
        return [element for element in self.elements if element.kind in kinds]

    def resolve(self, element: Element, text: str | Iterable[str | Reference]) -> Text:
        """Resolves the references in a text of a request. Reports each reference without a value for `element`. Such a
        reference stays unchanged, as in JMeter."""
        pieces = parse(text) if isinstance(text, str) else text
        if any(isinstance(piece, str) and "${" in piece for piece in pieces):
            self.report(element, "found text that is not a reference, expected ${NAME} or ${__FUNCTION(...)}", "${")
        return join_texts([piece if isinstance(piece, str) else self._resolve(element, piece)] for piece in pieces)

    def resolve_fixed(self, element: Element, text: str | Iterable[str | Reference]) -> str:
        """Resolves a text with fixed references. Reports each value that changes during the load."""
        found = self.resolve(element, text)
        for piece in found:
            if isinstance(piece, Placeholder):
                problem = "found a value that changes from request to request, expected a fixed value"
                self.report(element, f"{problem} in this {element.kind}", piece.written)
        return write_original(found)

    def setting(self, element: Element, name: str, default: str = "", *, holder: Element | None = None) -> str:
        """Returns a stripped property of `holder` (default: `element`). Reports values that the load changes."""
        return self.resolve_fixed(element, (holder or element).value(name, default)).strip()

    def number(self, element: Element, name: str, default: str, *, holder: Element | None = None) -> int:
        """Returns the number in a property of `holder` (default: `element`): -1, or at least 0. An empty text means 0,
        as in JMeter. For any other text, reports `element` and returns 1."""
        return self.parse_number(element, name, self.setting(element, name, default, holder=holder))

    def parse_number(self, element: Element, name: str, text: str) -> int:
        """Returns the number in `text`, the value of the property `name`. See `number`."""
        if re.fullmatch(r"-1|[0-9]{0,15}(\.0*)?", text):
            return int(text.partition(".")[0] or "0")
        if "${" not in text:
            self.report(element, f"{name}: found {text!r}, expected a whole number")
        return 1

    def _resolve(self, element: Element, reference: Reference) -> Piece:
        name, _, written = reference
        if not name.startswith("__"):
            return self._resolve_variable(element, name, written)
        match name, [self.resolve_fixed(element, argument).strip() for argument in reference.arguments]:
            case "__P" | "__property", [key, *_] if key in self.properties:
                return self.properties[key]
            case ("__P", [_, default]) | ("__property", [_, "", default]):
                return default
            case "__P" | "__property", [key, *_]:
                taken = "1" if name == "__P" else key
                self.report(
                    element, f"this property is not set, and JMeter uses {taken!r}: add -J{key}=...", f"-J{key}"
                )
                return written
            case "__V", [key]:
                return self._resolve_variable(element, key, written)
            case ("__Random", [low, high]) | ("__Random", [low, high, ""]) if _is_range(low, high):
                return Placeholder(f"int {int(low)} {int(high)}", written)
            case "__UUID", [] | [""]:
                return Placeholder("uuid", written)
        problem = "the engine's templates have no placeholder for this function with these arguments"
        self.report(element, problem, name)
        return written

    def _resolve_variable(self, element: Element, name: str, written: str) -> Piece:
        for data_set in reversed(self.data_sets):
            if name in data_set.columns:
                return Placeholder(f"csv {data_set.name}.{name}", written, (data_set.name, name))
        if name in self.variables:
            return self.variables[name]
        if name not in self.explanations:
            self.explanations[name] = self._explain_unknown(name)
        self.report(element, self.explanations[name], f"${{{name}}}")
        return written

    def _explain_unknown(self, name: str) -> str:
        # A property of an extractor or script names the variable, between separators or quotes.
        pattern = re.compile(rf"""(?:^|[\s,;"']){re.escape(name)}(?:$|[\s,;"'])""")
        others = (
            one for one in self.root.walk() if not (is_scoped(one) or one.kind in ("HTTPSamplerProxy", "Arguments"))
        )
        setter = next((one for one in others if one.has_text(pattern)), None)
        if setter is None:
            return "no element that the engine supports sets this variable"
        return f"the {setter.kind} at line {setter.line} sets this variable, but is not supported by the engine"

    def list_values(self, column: tuple[str, str]) -> list[str]:
        """Returns the values in `column`: the names of a data set and of its column."""
        return next(one.list_values(column[1]) for one in self.data_sets if one.name == column[0])


def _is_range(low: str, high: str) -> bool:
    try:
        return -(2**63) <= int(low) <= int(high) < 2**63
    except ValueError:
        return False
