"""JMeter's summary and aggregate reports, as its listeners save them: a row for each label, and one for all."""

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weir.compat.jmx.samples import Integers, Samples

SUMMARY_COLUMNS = (
    "Label", "# Samples", "Average", "Min", "Max", "Std. Dev.", "Error %", "Throughput", "Received KB/sec", "Sent KB/sec", "Avg. Bytes",
)  # fmt: skip
AGGREGATE_COLUMNS = (
    "Label", "# Samples", "Average", "Median", "90% Line", "95% Line", "99% Line", "Min", "Max", "Error %", "Throughput",
    "Received KB/sec", "Sent KB/sec",
)  # fmt: skip
_PERCENTS = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Row:
    """All samples of one label."""

    label: str
    elapsed_ms: Integers
    """Rising."""
    failed: int
    length_s: float
    """From the begin of the first to the end of the last."""
    received_bytes: int
    sent_bytes: int

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.elapsed_ms)

    @property
    def throughput_rps(self) -> float:
        """Samples a second."""
        return self.count / self.length_s if self.length_s else 0.0

    def percentile_ms(self, percent: float) -> int:
        """As JMeter counts: the value at the rank that is nearest to this share of all."""
        rank = math.floor(self.count * percent / 100 + 0.5)
        return int(self.elapsed_ms[min(max(rank, 1), self.count) - 1])

    def kib_per_s(self, bytes_: int) -> float:
        """What JMeter calls KB a second."""
        return bytes_ / 1024 / self.length_s if self.length_s else 0.0


def rows_of(samples: Samples) -> list[Row]:
    """A row for each label, in the order in which the plan has them, and TOTAL."""
    labels = [[sampler.name for sampler in native.group.samplers] for native in samples.groups]
    names = list(dict.fromkeys(name for names in labels for name in names))
    most = max(len(steps) for steps in labels)
    table = np.array([[names.index(steps[step]) if step < len(steps) else -1 for step in range(most)] for steps in labels])
    label = table[samples.group, samples.step]
    rows = [_row(name, samples, label == number) for number, name in enumerate(names) if (label == number).any()]
    return [*rows, _row("TOTAL", samples, np.ones(len(label), bool))]


def _row(label: str, samples: Samples, chosen: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Row:
    started_ns, ended_ns = samples.started_ns[chosen], samples.ended_ns[chosen]
    return Row(
        label,
        elapsed_ms=np.sort(samples.elapsed_ms[chosen]),
        failed=int(np.count_nonzero(samples.outcome[chosen])),
        length_s=float(ended_ns.max() - started_ns.min()) / 1e9 if len(ended_ns) else 0.0,
        received_bytes=int(samples.received_bytes[chosen].sum()),
        sent_bytes=int(samples.sent_bytes[chosen].sum()),
    )


def summary_report(rows: list[Row]) -> str:
    """The summary report as CSV."""
    return _csv(SUMMARY_COLUMNS, (_summary_row(row) for row in rows))


def aggregate_report(rows: list[Row]) -> str:
    """The aggregate report as CSV."""
    return _csv(AGGREGATE_COLUMNS, (_aggregate_row(row) for row in rows))


def _summary_row(row: Row) -> list[str]:
    if not row.count:
        return [row.label, "0", "0", "0", "0", "0.00", "0.000%", "0.00000", "0.00", "0.00", "0.0"]
    times = row.elapsed_ms
    spread = [f"{times.mean():.0f}", str(times[0]), str(times[-1]), f"{times.std():.2f}"]
    return [row.label, str(row.count), *spread, *_rates(row), f"{row.received_bytes / row.count:.1f}"]


def _aggregate_row(row: Row) -> list[str]:
    if not row.count:
        return [row.label, *(["0"] * 8), "0.000%", "0.00000", "0.00", "0.00"]
    times = row.elapsed_ms
    percentiles = [str(row.percentile_ms(percent)) for percent in _PERCENTS]
    return [row.label, str(row.count), f"{times.mean():.0f}", *percentiles, str(times[0]), str(times[-1]), *_rates(row)]


def _rates(row: Row) -> list[str]:
    received, sent = row.kib_per_s(row.received_bytes), row.kib_per_s(row.sent_bytes)
    return [f"{row.failed / row.count:.3%}", f"{row.throughput_rps:.5f}", f"{received:.2f}", f"{sent:.2f}"]


def _csv(columns: tuple[str, ...], rows: Iterator[list[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
