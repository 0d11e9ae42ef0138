"""Classifies other tools' messages about failed requests by the kinds of `ErrorCounts`."""

import re
from collections import Counter
from collections.abc import Iterable

_KINDS = {
    # The order matters: `dial` with a timeout is a failed connection.
    "connect": r"refused|\bdial\b|unreachable|no route|lookup|UnknownHost|ConnectException|ConnectTimeout|failed to connect|TLS|SSL",
    "timeout": r"time[d ]? ?-?out|deadline",
    "reset": r"\breset\b|EOF|closed|broken pipe|aborted|NoHttpResponse|incomplete|disconnect|connection error",
    "check": r"status|HTTPError|Test failed",
}


def classify_failure(message: str) -> str:
    """Returns the kind of a failure; `protocol` if the message matches no other kind.

    >>> classify_failure("dial tcp 127.0.0.1:1: connect: connection refused")
    'connect'
    """
    return next((kind for kind, words in _KINDS.items() if re.search(words, message, re.IGNORECASE)), "protocol")


def count_by_kind(failures: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Returns the number of failures by kind, from messages and their counts."""
    counts: Counter[str] = Counter()
    for message, count in failures:
        counts[classify_failure(message)] += count
    return dict(counts)
