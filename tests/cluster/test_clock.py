"""Tests the offset between the clocks of two machines."""

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.support.records import group, sample
from weir.cluster.clock import Clock, estimate_clock
from weir.cluster.remote_services import convert_sample
from weir.model.observer_records import CpuSample

WAYS_NS = st.lists(st.tuples(st.integers(0, 5_000_000), st.integers(0, 5_000_000)), min_size=1, max_size=50)


@given(offset_ns=st.integers(-(10**15), 10**15), ways_ns=WAYS_NS)
def test_the_offset_is_never_further_off_than_it_says(offset_ns: int, ways_ns: list[tuple[int, int]]) -> None:
    now_ns, readings = 10**15, []
    for there_ns, back_ns in ways_ns:
        readings.append((now_ns, now_ns + there_ns + offset_ns, now_ns + there_ns + back_ns))
        now_ns += there_ns + back_ns + random.Random(now_ns).randrange(1_000_000)
    clock = estimate_clock(readings)
    assert abs(clock.offset_ns - offset_ns) <= clock.error_ns + 1
    assert clock.round_trip_ns <= min(there + back for there, back in ways_ns) + 1
    assert clock.ours(clock.theirs(7)) == 7


def test_a_reading_of_a_node_is_one_of_this_machines_clock_and_says_nothing_of_the_node() -> None:
    cpu = CpuSample(cpu=0, user_s=1, system_s=1, idle_s=1, iowait_s=0, irq_s=0, softirq_s=0, steal_s=0)
    there = replace(sample(7.0, group("delay", tier="delay", cpu_s=0.5)), cpus=[cpu])
    here = convert_sample(there, "10.0.0.3", Clock(offset_ns=2_000_000_000, error_ns=100))
    assert here.t_ns == 5_000_000_000
    assert [(one.name, one.tier, one.cpu_user_s) for one in here.groups] == [("delay@10.0.0.3", "delay", 0.5)]
    assert here.cpus == []
