"""Computes the distribution functions for intervals and tests with scipy.special. The first call imports scipy.special:
the import is slow, and many processes do not need it."""

from functools import cache
from typing import Any


@cache
def load_scipy_special() -> Any:
    """Returns the module scipy.special. A call before a fork lets child processes share the module."""
    from scipy import special

    return special


def student_cdf(value: float, degrees: float) -> float:
    """Returns P(T ≤ value) for Student's T."""
    return float(load_scipy_special().stdtr(degrees, value))


def student_quantile(probability: float, degrees: float) -> float:
    """Returns the value x with P(T ≤ x) = `probability`."""
    return float(load_scipy_special().stdtrit(degrees, probability))


def noncentral_student_cdf(value: float, degrees: float, noncentrality: float) -> float:
    """Returns P(T ≤ value) for the noncentral T."""
    return float(load_scipy_special().nctdtr(degrees, noncentrality, value))


def normal_quantile(probability: float) -> float:
    """Returns the value x with P(Z ≤ x) = `probability` for a standard normal Z."""
    return float(load_scipy_special().ndtri(probability))


def chi_square_upper_quantile(probability: float, degrees: float) -> float:
    """Returns the value x with P(χ² > x) = `probability`."""
    return float(load_scipy_special().chdtri(degrees, probability))


def binomial_survival(successes: int, attempts: int, probability: float) -> float:
    """Returns the probability of more than `successes` successes in `attempts` attempts."""
    return float(load_scipy_special().bdtrc(successes, attempts, probability))
