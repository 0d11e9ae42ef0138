"""Histogram logs: the response times of each interval in HdrHistogram's own text format, for its readers and plotters.

The format is that of `HistogramLogWriter` (version 1.3): comments with the start time, a legend, and a line an interval with its start and
length in seconds, its largest value in milliseconds, and the histogram (V2, deflated, base64; in nanoseconds).
"""

from datetime import datetime
from types import TracebackType

from weir.model import histogram
from weir.model.errors import UsageError


class HistogramLog:
    """A log that grows with the load, so that it is whole up to whatever ends it.

    Raises:
        UsageError: the file cannot be written.
    """

    def __init__(self, path: str) -> None:
        try:
            # One line at a time, so that what was measured is there if the process is killed.
            self._file = open(path, "w", encoding="ascii", buffering=1)  # noqa: SIM115
        except OSError as error:
            raise UsageError(f"--hdr: {path}: cannot be written: {error.strerror}") from None
        self._file.write("#[Logged with weir]\n#[Histogram log format version 1.3]\n")

    def start(self, unix_s: float) -> None:
        """The clock has started, at this time of day; the intervals count from here."""
        at = datetime.fromtimestamp(unix_s).astimezone().isoformat(" ", "milliseconds")
        self._file.write(f"#[StartTime: {unix_s:.3f} (seconds since epoch), {at}]\n")
        self._file.write('"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n')

    def append(self, start_s: float, end_s: float, max_us: float, encoded: str) -> None:
        """An interval: `encoded` as the engine gives it (V2, base64)."""
        payload = histogram.deflated(histogram.bytes_of_text(encoded)).decode("ascii")
        self._file.write(f"{start_s:.3f},{end_s - start_s:.3f},{max_us / 1e3:.3f},{payload}\n")

    def __enter__(self) -> "HistogramLog":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()
