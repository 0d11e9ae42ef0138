"""Computes the distribution functions for intervals and tests with scipy.special. The first call of a function imports
scipy.special, because this import is slow and many processes do not need it."""

from functools import cache
from typing import Any


@cache
def load_scipy_special() -> Any:
    """Returns the module scipy.special. Call this function before a fork, so that child processes share the module."""
    from scipy import special

    return special


def student_cdf(value: float, degrees: float) -> float:
    """Returns P(T ≤ value) for Student's T."""
    return float(load_scipy_special().stdtr(degrees, value))


def student_quantile(probability: float, degrees: float) -> float:
    """Returns the value that Student's T does not exceed with this probability."""
    return float(load_scipy_special().stdtrit(degrees, probability))


def noncentral_student_cdf(value: float, degrees: float, noncentrality: float) -> float:
    """Returns P(T ≤ value) for the noncentral T."""
    return float(load_scipy_special().nctdtr(degrees, noncentrality, value))


def normal_quantile(probability: float) -> float:
    """Returns the value that a standard normal variable does not exceed with this probability."""
    return float(load_scipy_special().ndtri(probability))


def chi_square_upper_quantile(probability: float, degrees: float) -> float:
    """Returns the value that χ² exceeds with this probability."""
    return float(load_scipy_special().chdtri(degrees, probability))


def binomial_survival(successes: int, attempts: int, probability: float) -> float:
    """Returns the probability of more than `successes` successes in `attempts` attempts."""
    return float(load_scipy_special().bdtrc(successes, attempts, probability))
