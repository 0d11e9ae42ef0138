"""What the kernel saw of the requests of a trial, beside what its generator says of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from weir.model.errors import WeirError
from weir.model.tap import TapResult
from weir.observe.tap import Tap

_CONNECTIONS = 8
"""All do the same: these stand for the others, and a packet that is listened to takes some microseconds of a CPU."""


@dataclass(slots=True)
class Tapped:
    """What came of listening in."""

    one_in: int
    """Which share of the connections was listened to."""
    result: TapResult | None = None
    """None where nobody asked, or nothing could be heard."""
    why_not: str = ""
    """Why nothing could be heard though somebody asked."""

    @property
    def all_requests(self) -> int | None:
        """How many there were; None where only some were heard."""
        if self.result is None or self.one_in > 1 or self.result.dropped_packets:
            return None
        return self.result.requests


@contextmanager
def tapped(base_urls: Sequence[str], connections: int, *, asked: bool) -> Iterator[Tapped]:
    """Listens to a server's ports while what is inside goes on; a machine that does not allow that loses this and nothing more.

    Args:
        base_urls: where the load goes.
        connections: how many it has.
        asked: whether anybody wants to know.
    """
    found = Tapped(max(1, connections // _CONNECTIONS))
    try:
        tap = Tap([_port(url) for url in base_urls], one_in=found.one_in) if asked else None
    except WeirError as error:
        tap, found.why_not = None, error.message
    if tap is None:
        yield found
        return
    with tap:
        yield found
        try:
            found.result = tap.result()
        except WeirError as error:
            found.why_not = error.message


def _port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)
