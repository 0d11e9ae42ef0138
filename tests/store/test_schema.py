"""The run file's tables follow from record types. A changed field of a record shows here as a changed schema."""

from pathlib import Path
from typing import get_type_hints

import pytest

from weir.model.load_records import Interval, IntervalQuantiles
from weir.model.observer_records import CpuSample, GroupSample, NetworkSample, PoolTimes, SocketCounts
from weir.model.records import Record
from weir.store import CpuSampleRow, IntervalRow, NetworkSampleRow, SampleRow, ThreadStateRow
from weir.store.schema import CREATE_TABLES


def test_the_tables_are_those_of_the_schema_number() -> None:
    expected = (Path(__file__).parent / "schema.sql").read_text(encoding="utf-8")
    assert expected == CREATE_TABLES, (
        "raise SCHEMA_NUMBER, tell it in docs/reference/run-file.md, then write CREATE_TABLES to schema.sql"
    )


@pytest.mark.parametrize(
    ("row", "records", "own"),
    [
        (SampleRow, (GroupSample,), {"t_s"}),
        (CpuSampleRow, (CpuSample,), {"t_s"}),
        (ThreadStateRow, (PoolTimes,), {"t_s", "name", "tier"}),
        (NetworkSampleRow, (NetworkSample, SocketCounts), {"t_s", "name"}),
        (IntervalRow, (Interval,), {"idx", "errors", *(f"{name}_us" for name in IntervalQuantiles.names())}),
    ],
)
def test_a_row_keeps_every_plain_field_of_the_engines_record_in_its_type(
    row: type, records: tuple[type[Record], ...], own: set[str]
) -> None:
    plain = (int, float, str, int | None, float | None)
    fields = {name: type_ for record in records for name, type_ in get_type_hints(record).items() if type_ in plain}
    fields = {name: type_ for name, type_ in fields.items() if name not in ("index", "histogram")}
    assert {name: type_ for name, type_ in get_type_hints(row).items() if name not in own} == fields
