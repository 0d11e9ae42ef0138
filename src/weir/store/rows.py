"""Between the types of `weir.model` and the columns of the run file, both ways. No SQL and no file here.

Rows of intervals and samples come back as named tuples: a long run has hundreds of thousands of them, and they were validated
when they came in from the engine.
"""

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from pydantic import TypeAdapter

from weir.model.claim import Claim
from weir.model.load import load_from_plan
from weir.model.records import ErrorCounts, Interval, LoadSummary, Validity
from weir.model.resources import StackResources
from weir.model.run import Arm, Ceiling, Cell, Limits, Network, Placement, PublishedFigure, RunInfo, Trial, TrialResult
from weir.model.tap import TapResult
from weir.model.verdict import TrialVerdict
from weir.model.window import Window
from weir.model.work import service_work_from_dict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Column = int | float | str | bytes | None
Row = tuple[Column, ...]
_RESOURCES = TypeAdapter(StackResources)
_CLAIM = TypeAdapter(Claim)

RUN_COLUMNS = (
    "study", "title", "question", "scale", "seed", "blocks", "indicative", "baseline", "study_text", "command", "weir_version",
    "started_unix_ns", "environment", "placement", "published", "source", "claims", "study_folder",
)  # fmt: skip
CELL_COLUMNS = (
    "id", "stack", "variant", "workload", "load", "arm", "title", "model", "settings", "replicas", "cpus", "started", "generator",
    "coordinates", "ceilings",
)  # fmt: skip
TRIAL_COLUMNS = (
    "id", "cell_id", "block", "position", "attempt", "started_unix_ns", "validity", "reasons", "summary", "resources",
    "load_started_monotonic_ns", "ready_s", "artifact_bytes", "runtime", "isolation", "logs", "window", "whole_load",
    "phases_s", "work", "discrepancies", "claim", "tap",
)  # fmt: skip
RESULT_COLUMNS = TRIAL_COLUMNS[6:]
INTERVAL_COLUMNS = (
    "idx", "start_s", "end_s", "due", "sent", "completed", "ok", "failed", "errors", "in_flight", "queued", "oldest_age_us",
    "bytes_sent", "bytes_received", "mean_us", "p50_us", "p90_us", "p99_us", "max_us",
)  # fmt: skip

_ERRORS = INTERVAL_COLUMNS.index("errors")
# Of almost every interval.
_NO_ERRORS, _NO_ERRORS_TEXT = MappingProxyType(ErrorCounts().model_dump()), ErrorCounts().model_dump_json()


class IntervalRow(NamedTuple):
    """What the generator saw in one slice of a trial; times since the load's start, response times None where nothing completed."""

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


class Answered(NamedTuple):
    """How many requests were answered in each interval of a trial, by time; times since the load's start."""

    start_s: "NDArray[np.float64]"
    end_s: "NDArray[np.float64]"
    completed: "NDArray[np.float64]"

    @property
    def rate_rps(self) -> "NDArray[np.float64]":
        """Answers a second."""
        return self.completed / (self.end_s - self.start_s)


def storable(text: str) -> str:
    """`text` as SQLite can keep it: bytes of a foreign process that are not UTF-8 (lone surrogates) become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def run_row(info: RunInfo) -> Row:
    """The columns `RUN_COLUMNS` of `info`."""
    values = {name: getattr(info, name) for name in RUN_COLUMNS}
    values["indicative"] = int(info.indicative)
    values["environment"] = json.dumps(info.environment)
    values["placement"] = json.dumps(asdict(info.placement))
    values["published"] = json.dumps([asdict(figure) for figure in info.published])
    values["claims"] = json.dumps(info.claims)
    return tuple(storable(value) if isinstance(value, str) else value for value in values.values())


def run_from_row(row: Sequence[Any]) -> RunInfo:
    """The inverse of `run_row`."""
    values = dict(zip(RUN_COLUMNS, row, strict=True))
    values["indicative"] = bool(values["indicative"])
    values["environment"] = json.loads(values["environment"])
    values["placement"] = _placement(json.loads(values["placement"]))
    values["published"] = tuple(PublishedFigure(**figure) for figure in json.loads(values["published"]))
    values["claims"] = tuple(json.loads(values["claims"]))
    return RunInfo(**values)


def _placement(kept: dict[str, Any]) -> Placement:
    network = kept.pop("network", None)
    return Placement(
        limits={tier: Limits(**limits) for tier, limits in kept.pop("limits", {}).items()},
        network=None if network is None else Network(**network),
        reached_at=kept.pop("reached_at", None),
        services_on=kept.pop("services_on", None),
        **{key: tuple(value) for key, value in kept.items()},
    )


def cell_row(cell: Cell) -> Row:
    """The columns `CELL_COLUMNS` of `cell`."""
    return (
        cell.id, cell.stack, cell.variant, cell.workload, json.dumps(cell.load.to_plan()), cell.arm, storable(cell.title),
        storable(cell.model), json.dumps(cell.settings), cell.replicas, cell.cpus, int(cell.started), cell.generator,
        json.dumps(cell.coordinates), json.dumps([asdict(one) for one in cell.ceilings]),
    )  # fmt: skip


def cell_from_row(row: Sequence[Any]) -> Cell:
    """The inverse of `cell_row`."""
    identifier, stack, variant, workload, load, arm, title, model, settings, replicas, cpus, started, generator, coordinates, ceilings = row
    if arm not in get_args(Arm):
        raise ValueError(f"cell {identifier}: arm {arm!r}")
    return Cell(
        id=identifier, stack=stack, variant=variant, workload=workload, load=load_from_plan(json.loads(load)),
        arm=cast(Arm, arm), title=title, model=model, settings=json.loads(settings), replicas=replicas, cpus=cpus, started=bool(started),
        generator=generator, coordinates=json.loads(coordinates), ceilings=tuple(Ceiling(**one) for one in json.loads(ceilings)),
    )  # fmt: skip


def result_row(result: TrialResult) -> Row:
    """The columns `RESULT_COLUMNS` of `result`; its histograms are rows of their own."""
    return (
        result.verdict.validity,
        json.dumps(result.verdict.to_json()),
        None if result.summary is None else result.summary.model_dump_json(by_alias=True),
        None if result.resources is None else json.dumps(asdict(result.resources)),
        result.load_started_monotonic_ns,
        result.ready_s,
        result.artifact_bytes,
        storable(result.runtime),
        storable(result.isolation),
        json.dumps(result.logs),
        None if result.window is None else json.dumps(result.window.to_json()),
        None if result.whole_load is None else result.whole_load.model_dump_json(by_alias=True),
        json.dumps(result.phases_s),
        json.dumps([asdict(one) for one in result.work]),
        json.dumps(result.discrepancies),
        None if result.claim is None else storable(_CLAIM.dump_json(result.claim).decode()),
        None if result.tap is None else result.tap.model_dump_json(),
    )


def trial_from_row(row: Sequence[Any], cells: dict[int, Cell]) -> Trial:
    """A finished trial from the columns `TRIAL_COLUMNS`, without its histograms."""
    values = dict(zip(TRIAL_COLUMNS, row, strict=True))
    if values["validity"] not in get_args(Validity):
        raise ValueError(f"trial {values['id']}: validity {values['validity']!r}")
    result = TrialResult(
        verdict=TrialVerdict.from_json(json.loads(values["reasons"])),
        summary=None if values["summary"] is None else LoadSummary.model_validate_json(values["summary"]),
        resources=None if values["resources"] is None else _RESOURCES.validate_json(values["resources"]),
        load_started_monotonic_ns=values["load_started_monotonic_ns"],
        ready_s=values["ready_s"],
        artifact_bytes=values["artifact_bytes"],
        runtime=values["runtime"],
        isolation=values["isolation"],
        logs=json.loads(values["logs"]),
        window=None if values["window"] is None else Window.from_json(json.loads(values["window"])),
        whole_load=None if values["whole_load"] is None else LoadSummary.model_validate_json(values["whole_load"]),
        phases_s=json.loads(values["phases_s"]),
        work=tuple(service_work_from_dict(one) for one in json.loads(values["work"])),
        discrepancies=tuple(json.loads(values["discrepancies"])),
        claim=None if values["claim"] is None else _CLAIM.validate_json(values["claim"]),
        tap=None if values["tap"] is None else TapResult.model_validate_json(values["tap"]),
    )
    return Trial(
        id=values["id"],
        cell=cells[values["cell_id"]],
        block=values["block"],
        position=values["position"],
        attempt=values["attempt"],
        started_unix_ns=values["started_unix_ns"],
        result=result,
    )


def interval_row(trial_id: int, interval: Interval) -> Row:
    """`trial_id`, the columns `INTERVAL_COLUMNS`, and the histogram's bytes."""
    times = interval.response_time_us
    return (
        trial_id, interval.index, interval.start_s, interval.end_s, interval.due, interval.sent, interval.completed, interval.ok,
        interval.failed, interval.errors.model_dump_json(), interval.in_flight, interval.queued, interval.oldest_age_us,
        interval.bytes_sent, interval.bytes_received, times.mean, times.p50, times.p90, times.p99, times.max,
        b64decode(interval.histogram),
    )  # fmt: skip


def interval_from_row(row: Sequence[Any]) -> IntervalRow:
    """An interval from the columns `INTERVAL_COLUMNS`."""
    text = row[_ERRORS]
    errors = _NO_ERRORS if text == _NO_ERRORS_TEXT else json.loads(text)
    return IntervalRow._make((*row[:_ERRORS], errors, *row[_ERRORS + 1 :]))
