"""Tests pauses of a JVM: real logs of JDK 17 and 25 with each collector (timenanos, level, tags), and a running JVM."""

import doctest
from pathlib import Path

import pytest

from weir.observe import jvm
from weir.observe.jvm import GC_PAUSE, SAFEPOINT, Pause, add_pause_log, parse_pauses, read_pause_events

G1_17 = """\
[11382289ns][info][gc] Using G1
[1077378787ns][info][safepoint   ] Safepoint "Cleanup", Time since last: 1017133503 ns, Reaching safepoint: 2696 ns, Cleanup: 121097 ns, At safepoint: 77790 ns, Total: 201583 ns
[1205619565ns][info][gc,start    ] GC(0) Pause Young (Normal) (G1 Evacuation Pause)
[1218000000ns][info][gc,phases   ] GC(0)   Pre Evacuate Collection Set: 0.1ms
[1218026012ns][info][gc          ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 6M->3M(64M) 12.407ms
[1225568186ns][info][safepoint   ] Safepoint "G1CollectForAllocation", Time since last: 128171811 ns, Reaching safepoint: 5029 ns, Cleanup: 26222 ns, At safepoint: 19986026 ns, Total: 20017277 ns
"""  # noqa: E501
SERIAL_25 = """\
[1739082998ns][info][gc          ] GC(0) Pause Young (Allocation Failure) 18M->4M(61M) 9.070ms
[1739128899ns][info][safepoint   ] Safepoint "SerialCollectForAllocation", Time since last: 1709065521 ns, Reaching safepoint: 4043 ns, At safepoint: 9100148 ns, Leaving safepoint: 26025 ns, Total: 9130216 ns, Threads: 0 runnable, 10 total
[2039000000ns][info][safepoint   ] Safepoint "ICBufferFull", Time since last: 1 ns, Reaching safepoint: 4043 ns, At safepoint: 2000000 ns, Leaving safepoint: 25 ns, Total: 2004068 ns, Threads: 3 runnable, 10 total
"""  # noqa: E501
Z_25 = """\
[586662762ns][info][gc,phases   ] GC(0) Y: Pause Mark Start (Major) 0.014ms
[586675118ns][info][safepoint   ] Safepoint "ZMarkStartYoungAndOld", Time since last: 386818881 ns, Reaching safepoint: 174048 ns, At safepoint: 29060 ns, Leaving safepoint: 1696 ns, Total: 204804 ns, Threads: 1 runnable, 10 total
[600000000ns][info][gc,phases   ] GC(0) Y: Concurrent Mark 12.500ms
[633359032ns][info][gc,phases   ] GC(0) Y: Pause Mark End 0.014ms
"""  # noqa: E501


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (G1_17, [Pause(GC_PAUSE, "Pause Young (Normal) (G1 Evacuation Pause) 6M->3M(64M)", 1225568186, 0.020017277)]),
        (
            SERIAL_25,
            [
                Pause(GC_PAUSE, "Pause Young (Allocation Failure) 18M->4M(61M)", 1739128899, 0.009130216),
                Pause(SAFEPOINT, "ICBufferFull", 2039000000, 0.002004068),
            ],
        ),
        (
            Z_25,
            [
                Pause(GC_PAUSE, "Pause Mark Start (Major)", 586675118, 0.000204804),
                Pause(GC_PAUSE, "Pause Mark End", 633359032, 0.000014),
            ],
        ),
        ("", []),
        ("Picked up JAVA_TOOL_OPTIONS: -X\n[12ns][info][gc] GC(1) Pause Yo", []),
    ],
    ids=["G1 of JDK 17", "Serial of JDK 25", "Z of JDK 25", "nothing", "cut short"],
)
def test_each_collectors_pauses_are_as_long_as_all_threads_stood_still(log: str, expected: list[Pause]) -> None:
    assert list(parse_pauses(log.splitlines())) == expected


def test_events_count_from_the_loads_start_and_those_outside_of_it_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "gc-1.log"
    log.write_text(SERIAL_25 + Z_25)
    events = read_pause_events([log, tmp_path / "missing.log"], start_ns=1_735_000_000, end_ns=1_800_000_000)
    assert [(event.kind, event.duration_s) for event in events] == [(GC_PAUSE, 0.009130216)]
    # The pause began before the load.
    assert events[0].t_s == pytest.approx(-0.005001317)
    assert events[0].detail == "Pause Young (Allocation Failure) 18M->4M(61M), 9.13 ms"


def test_what_a_stack_tells_its_jvm_stays_and_comes_last() -> None:
    environment = add_pause_log({"PATH": "/bin", "JAVA_TOOL_OPTIONS": "-Xmx1g"}, Path("/a b/gc-%p.log"))
    assert environment["PATH"] == "/bin"
    assert environment["JAVA_TOOL_OPTIONS"].endswith(" -Xmx1g")
    assert environment["JAVA_TOOL_OPTIONS"].startswith("'-Xlog:")


def test_the_examples_in_the_docstrings_are_right() -> None:
    assert doctest.testmod(jvm).failed == 0
