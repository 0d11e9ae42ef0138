"""Converts the types of `weir.model` to columns of the run file, and back. The reader does not validate intervals: a
long run has hundreds of thousands of intervals, and the writer has validated each interval."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

from pydantic import PlainSerializer, PlainValidator

from weir.model.load import Load, load_from_plan, store_load
from weir.model.load_records import ErrorCounts, IntervalQuantiles, Validity
from weir.model.run_types import Cell, RunInfo, Trial, TrialEvent, TrialResult
from weir.model.verdict import Reason, TrialVerdict
from weir.store.table import Codec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_AsPlan = Annotated[Load, PlainValidator(load_from_plan), PlainSerializer(store_load)]
RUN = Codec(get_type_hints(RunInfo))
CELL = Codec(get_type_hints(Cell) | {"load": _AsPlan})
# A verdict has two columns, so that queries can select trials by validity. Histograms have a separate table.
_RESULT = {
    field: type_ for field, type_ in get_type_hints(TrialResult).items() if field not in ("verdict", "histograms")
}
RESULT = Codec(
    {"validity": Validity, "reasons": tuple[Reason, ...]} | _RESULT,
    {"validity": "verdict.validity", "reasons": "verdict.reasons"},
)
EVENT = Codec(get_type_hints(TrialEvent))
BEGUN_COLUMNS = ("cell_id", "block", "position", "attempt", "started_unix_ns")
TRIAL_COLUMNS = ("id", *BEGUN_COLUMNS, *RESULT.columns)


class IntervalRow(NamedTuple):
    """One interval of a trial, from the generator's report. `start_s` and `end_s` are seconds since the load's start.
    Response times are None if no request completed."""

    idx: int
    start_s: float
    end_s: float
    due: int
    sent: int
    completed: int
    ok: int
    failed: int
    errors: Mapping[str, int]
    in_flight: int
    queued: int
    oldest_age_us: float
    bytes_sent: int
    bytes_received: int
    mean_us: float | None
    p50_us: float | None
    p90_us: float | None
    p99_us: float | None
    max_us: float | None


INTERVAL = Codec(
    get_type_hints(IntervalRow) | {"errors": ErrorCounts},
    # The engine's record has other names for these fields.
    {"idx": "index"} | {f"{name}_us": f"response_time_us.{name}" for name in IntervalQuantiles.names()},
)
_ERRORS = IntervalRow._fields.index("errors")
# Almost no interval has errors. A comparison of texts saves most of the parsing.
_NO_ERRORS = MappingProxyType(ErrorCounts().to_json())
_NO_ERRORS_TEXT = json.dumps(_NO_ERRORS.copy(), separators=(",", ":"))


class Answered(NamedTuple):
    """Start, end and number of responses of each interval, sorted by time. Times are seconds since the load's start."""

    start_s: "NDArray[np.float64]"
    end_s: "NDArray[np.float64]"
    completed: "NDArray[np.float64]"

    @property
    def rate_rps(self) -> "NDArray[np.float64]":
        return self.completed / (self.end_s - self.start_s)


def trial_from_row(row: Sequence[Any], cells: Mapping[int, Cell]) -> Trial:
    """Returns a finished trial from the columns `TRIAL_COLUMNS`. The trial has no histograms."""
    id_, cell_id, block, position, attempt, started_unix_ns, *result = row
    fields = RESULT.decode(result)
    del fields["verdict.validity"]
    verdict = TrialVerdict(fields.pop("verdict.reasons"))
    return Trial(id_, cells[cell_id], block, position, attempt, started_unix_ns, TrialResult(verdict, **fields))


def interval_from_row(row: Sequence[Any]) -> IntervalRow:
    """Returns an interval from the columns of `IntervalRow`, in the order of its fields."""
    text = row[_ERRORS]
    errors = _NO_ERRORS if text == _NO_ERRORS_TEXT else json.loads(text)
    return IntervalRow._make((*row[:_ERRORS], errors, *row[_ERRORS + 1 :]))
