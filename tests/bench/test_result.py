"""Tests the kept results of a benchmark, and the page made from them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.result import Bar, Found, PartResult, Provenance, Table, page, read_results

TLS = PartResult(
    "tls",
    Found(
        "Throughput over TLS",
        Table(["", "requests/s"], [["weir", "2"], ["wrk", "1"]]),
        [
            Bar("at least 1 × wrk", "2.000", True),
            Bar("at least 3 × wrk", "2.000", False),
            Bar("at least 1 × ab", "", None),
        ],
        ["ab is not installed"],
        {"GET": {"weir": [{"throughput_rps": 2.0}]}},
    ),
    Provenance(5, 1, ["CPU: one", "kernel: Linux"], "server on CPU 1, load on CPU 0", 0.01, ["weir 0.1.0"]),
)
MEMORY = PartResult(
    "memory", Found("Memory over time", Table(["load"], [["10 s"]])), replace(TLS.provenance, rounds=1, seconds=600)
)


def test_what_is_kept_is_read_back_as_it_was(tmp_path: Path) -> None:
    for result in (MEMORY, TLS):
        result.write(tmp_path / "results")
    assert read_results(tmp_path / "results", ["tls", "latency", "memory"]) == [TLS, MEMORY]
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["memory.one.json", "tls.one.json"]


def test_a_part_measured_again_takes_the_place_of_its_former_result(tmp_path: Path) -> None:
    TLS.write(tmp_path)
    again = replace(TLS, provenance=replace(TLS.provenance, rounds=11))
    again.write(tmp_path)
    assert read_results(tmp_path, ["tls"]) == [again]


def test_what_a_part_found_on_another_cpu_is_kept_beside_it(tmp_path: Path) -> None:
    other = replace(TLS, provenance=replace(TLS.provenance, machine=["CPU: Two(R) 3000, 4 CPUs"]))
    TLS.write(tmp_path)
    other.write(tmp_path)
    assert read_results(tmp_path, ["tls"]) == [TLS, other]
    text = page([TLS, other])
    assert text.index("## Throughput over TLS, on one\n") < text.index("## Throughput over TLS, on Two(R) 3000\n")
    assert "| at least 1 × wrk | Two(R) 3000 | 2.000 | yes |" in text


def test_a_result_of_another_schema_is_refused(tmp_path: Path) -> None:
    TLS.write(tmp_path)
    path = tmp_path / "tls.one.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 99}))
    with pytest.raises(ValueError, match="found schema 99, expected 1"):
        read_results(tmp_path, ["tls"])


def test_the_page_has_every_bar_a_section_a_part_and_what_was_left_out() -> None:
    text = page([TLS, MEMORY])
    assert "| at least 1 × wrk | one | 2.000 | yes |" in text
    assert "| at least 3 × wrk | one | 2.000 | NO |" in text
    assert "| at least 1 × ab | one |  | not measured |" in text
    assert "- ab is not installed" in text
    assert text.index("## Throughput over TLS") < text.index("## Memory over time") < text.index("## Machine")
    assert "5 rounds of 1 s; other processes took 1.0% of the CPUs meanwhile. weir 0.1.0." in text
    assert "1 round of 600 s" in text


def test_a_part_measured_on_a_machine_that_was_not_quiet_says_so() -> None:
    loud = replace(TLS, provenance=replace(TLS.provenance, others_fraction=0.5))
    assert "50.0% of the CPUs meanwhile: NOT QUIET" in page([loud])


def test_parts_of_different_machines_name_theirs() -> None:
    other = replace(MEMORY, provenance=replace(MEMORY.provenance, machine=["CPU: two"]))
    text = page([TLS, other])
    assert "## Machine of tls" in text
    assert "## Machine of memory" in text
