"""Widens the interval of a run that ends as soon as the interval is narrow enough.

Such a run often ends when the spread is small by chance. If weir checks the width after each block, beginning with the
third, a 95 % interval contains the true value in only 90 % of runs. So weir widens the interval with each check.
Simulations determined the factor and the first check (tests/stats/test_sequential.py).
"""

_WIDENING = 0.15


def widen_interval(blocks: int, first_look: int | None) -> float:
    """Returns the factor that widens an interval from `blocks` blocks, relative to a run with a fixed number of blocks.

    `first_look` is the first number of blocks after which a narrow interval may end the run. None: the number of blocks
    is fixed. With a first look after 4 blocks, final intervals contain the true value in 93 to 97 % of runs.

    >>> widen_interval(4, 4), widen_interval(5, 4), widen_interval(50, None)
    (1.0, 1.075, 1.0)
    """
    if first_look is None or blocks <= first_look:
        return 1.0
    return 1 + _WIDENING * (1 - 1 / (blocks - first_look + 1))
