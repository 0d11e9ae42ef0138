"""What a tool says of a failed request, as one of the kinds that weir counts (`ErrorCounts`)."""

import re
from collections import Counter
from collections.abc import Iterable

_KINDS = (
    # In this order: a dial that timed out made no connection.
    ("connect", r"refused|\bdial\b|unreachable|no route|lookup|UnknownHost|ConnectException|ConnectTimeout|failed to connect|TLS|SSL"),
    ("timeout", r"time[d ]? ?-?out|deadline"),
    ("reset", r"\breset\b|EOF|closed|broken pipe|aborted|NoHttpResponse|incomplete|disconnect|connection error"),
    ("check", r"status|HTTPError|Test failed"),
)


def kind_of(said: str) -> str:
    """The kind of a failure by the words of it; what names none of them is taken for an answer that is not HTTP.

    >>> kind_of("dial tcp 127.0.0.1:1: connect: connection refused")
    'connect'
    """
    return next((kind for kind, words in _KINDS if re.search(words, said, re.IGNORECASE)), "protocol")


def by_kind(said: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Failures by kind, from what was said of them and how often."""
    counted: Counter[str] = Counter()
    for words, often in said:
        counted[kind_of(words)] += often
    return dict(counted)
