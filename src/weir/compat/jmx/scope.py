"""The scope of a sampler: the elements that apply to it, and the values of references there.

An element applies to its parent, if that is a sampler, and to all samplers below its parent.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from weir.compat.jmx.tree import Element
from weir.compat.jmx.values import Text, Values
from weir.model.errors import UsageError

_SCOPED = frozenset(["HeaderManager", "CookieManager", "ConstantTimer", "UniformRandomTimer", "ResponseAssertion"])

Report = Callable[[Element, str], None]
"""Takes an element that weir does not support, and the reason."""


def is_scoped(element: Element) -> bool:
    """Whether a scope has the element. Of the defaults of all protocols it has those of HTTP."""
    is_http = element.attributes.get("guiclass") == "HttpDefaultsGui"
    return element.kind in _SCOPED or (element.kind == "ConfigTestElement" and is_http)


@dataclass(frozen=True, slots=True)
class Scope:
    """The elements that apply at one place, the nearest first."""

    values: Values
    report: Report
    elements: tuple[Element, ...] = ()

    def within(self, elements: Iterable[Element]) -> "Scope":
        """Returns the scope beside these elements and below them."""
        return replace(self, elements=(*filter(is_scoped, elements), *self.elements))

    def find(self, *kinds: str) -> list[Element]:
        """Returns the elements of some kinds."""
        return [element for element in self.elements if element.kind in kinds]

    def resolve(self, element: Element, text: str) -> Text:
        """Returns a text of a request; reports for `element` what weir cannot resolve."""
        return self.values.resolve(text, partial(self.report, element))

    def resolve_fixed(self, element: Element, text: str) -> str:
        """Returns a text that must be known before the load."""
        return self.values.resolve_fixed(text, partial(self.report, element))

    def setting(self, element: Element, name: str, default: str = "") -> str:
        """Returns a property without white space around it. It must be known before the load."""
        return self.resolve_fixed(element, element.value(name, default)).strip()

    def number(self, element: Element, name: str, default: str, *, holder: Element | None = None) -> float:
        """Returns a property of `holder`, by default of `element`, that is a number. Errors name `element`."""
        text = self.resolve_fixed(element, (holder or element).value(name, default)).strip()
        return parse_number(element, text or default, name)


def parse_number(element: Element, text: str, name: str) -> float:
    """Returns the number that a property has. -1 is the only negative one. Raises UsageError: the text is not a
    number."""
    try:
        found = float(text)
        if 0 <= found < 1e15 or found == -1:
            return found
    except ValueError:
        pass
    raise UsageError(f"line {element.line}: {element.kind} {element.name!r}: {name}: found {text!r}, expected a number")
