"""All programs that can make a load, by name."""

from weir.generators.ab import Ab
from weir.generators.h2load import H2load
from weir.generators.hey import Hey
from weir.generators.jmeter import JMeter
from weir.generators.k6 import K6
from weir.generators.locust import Locust
from weir.generators.oha import Oha
from weir.generators.tool import Tool
from weir.generators.wrk import Wrk, Wrk2
from weir.model.errors import UsageError

TOOLS: dict[str, Tool] = {tool.name: tool for tool in (Wrk(), Wrk2(), Hey(), Ab(), Oha(), K6(), H2load(), JMeter(), Locust())}
"""Those other than weir's engine."""
GENERATORS: tuple[str, ...] = ("weir", *TOOLS)
"""What a study may name as its generator; `weir` is the engine."""


def tool(name: str) -> Tool:
    """The tool of that name.

    Raises:
        UsageError: there is none.
    """
    found = TOOLS.get(name)
    if found is None:
        raise UsageError(f"generator: found {name!r}, expected one of {', '.join(GENERATORS)}")
    return found
