"""How far the clocks of two machines are apart."""

import random

from hypothesis import given
from hypothesis import strategies as st

from weir.cluster.clock import clock_of

WAYS_NS = st.lists(st.tuples(st.integers(0, 5_000_000), st.integers(0, 5_000_000)), min_size=1, max_size=50)


@given(offset_ns=st.integers(-(10**15), 10**15), ways_ns=WAYS_NS)
def test_the_offset_is_never_further_off_than_it_says(offset_ns: int, ways_ns: list[tuple[int, int]]) -> None:
    now_ns, readings = 10**15, []
    for there_ns, back_ns in ways_ns:
        readings.append((now_ns, now_ns + there_ns + offset_ns, now_ns + there_ns + back_ns))
        now_ns += there_ns + back_ns + random.Random(now_ns).randrange(1_000_000)
    clock = clock_of(readings)
    assert abs(clock.offset_ns - offset_ns) <= clock.error_ns + 1
    assert clock.round_trip_ns <= min(there + back for there, back in ways_ns) + 1
    assert clock.ours(clock.theirs(7)) == 7
