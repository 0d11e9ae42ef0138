"""What applies to a sampler: JMeter's scopes.

An element applies to its parent, if that is a sampler, and to all samplers below its parent.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from weir.compat.jmx.tree import Element
from weir.compat.jmx.values import Values
from weir.model.errors import UsageError

Complain = Callable[[Element, str], None]
"""Told which element is not supported, and why."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The elements that apply at one place, the nearest first."""

    values: Values
    defaults: tuple[Element, ...] = ()
    headers: tuple[Element, ...] = ()
    cookies: tuple[Element, ...] = ()
    timers: tuple[Element, ...] = ()
    assertions: tuple[Element, ...] = ()

    def within(self, elements: Iterable[Element]) -> "Scope":
        """The scope of what lies beside these elements and below."""
        near = list(elements)

        def of(*kinds: str) -> tuple[Element, ...]:
            return tuple(element for element in near if element.kind in kinds)

        return replace(
            self,
            defaults=tuple(element for element in of("ConfigTestElement") if is_http_defaults(element)) + self.defaults,
            headers=of("HeaderManager") + self.headers,
            cookies=of("CookieManager") + self.cookies,
            timers=of("ConstantTimer", "UniformRandomTimer") + self.timers,
            assertions=of("ResponseAssertion") + self.assertions,
        )


SCOPED = frozenset(["HeaderManager", "CookieManager", "ConstantTimer", "UniformRandomTimer", "ResponseAssertion"])
"""What a scope takes up, beside request defaults."""


def is_http_defaults(element: Element) -> bool:
    """Whether it is HTTP Request Defaults: other protocols keep theirs in elements of the same kind."""
    return element.kind == "ConfigTestElement" and element.node.attributes.get("guiclass", "") == "HttpDefaultsGui"


def number(element: Element, text: str, name: str) -> float:
    """A number that is known before the load.

    Raises:
        UsageError: it is none.
    """
    try:
        found = float(text)
        if 0 <= found < 1e15 or found == -1:
            return found
    except ValueError:
        pass
    raise UsageError(f"line {element.node.line}: {element.kind} {element.name!r}: {name}: found {text!r}, expected a number")
