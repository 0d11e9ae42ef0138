"""The distributions that intervals and tests rest on, from scipy.special.

It is loaded when the first of them is asked for, since that takes longer than all else that findings import: a worker that draws charts,
and a command that asks for no interval, never wait for it.
"""

from functools import cache
from typing import Any


@cache
def load() -> Any:
    """scipy.special. Called by itself before a process is copied whose copies will need it: each would load its own."""
    from scipy import special

    return special


def student_below(value: float, degrees: float) -> float:
    """P(T ≤ value) for Student's T."""
    return float(load().stdtr(degrees, value))


def student_quantile(probability: float, degrees: float) -> float:
    """The value that Student's T does not exceed with this probability."""
    return float(load().stdtrit(degrees, probability))


def noncentral_student_below(value: float, degrees: float, noncentrality: float) -> float:
    """P(T ≤ value) for the noncentral T."""
    return float(load().nctdtr(degrees, noncentrality, value))


def normal_quantile(probability: float) -> float:
    """The value that a standard normal variable does not exceed with this probability."""
    return float(load().ndtri(probability))


def chi_square_exceeded(probability: float, degrees: float) -> float:
    """The value that χ² exceeds with this probability."""
    return float(load().chdtri(degrees, probability))


def binomial_above(successes: int, attempts: int, probability: float) -> float:
    """P(more than `successes` of `attempts`)."""
    return float(load().bdtrc(successes, attempts, probability))
