"""Writes the response times of each interval to a histogram log, which HdrHistogram's tools read. The text format is
version 1.3 of `HistogramLogWriter`: comments with the start time, column names, and a line for each interval. A line
has start and length in seconds, maximum in milliseconds, and histogram in nanoseconds (V2, deflated, base64)."""

from contextlib import AbstractContextManager
from datetime import datetime

from weir.model import hdr as histogram
from weir.model.errors import UsageError
from weir.model.load_observer import LoadObserver
from weir.model.load_records import Interval, LoadStarted


class HistogramLog(LoadObserver, AbstractContextManager["HistogramLog"]):
    """A histogram log, complete even if the load ends early. Raises UsageError if the file cannot be written."""

    def __init__(self, path: str) -> None:
        try:
            # One line at a time: a killed process leaves all earlier lines.
            self._file = open(path, "w", encoding="ascii", buffering=1)  # noqa: SIM115
        except OSError as error:
            raise UsageError(f"--hdr: {path}: cannot be written: {error.strerror}") from None
        self._file.write("#[Logged with weir]\n#[Histogram log format version 1.3]\n")

    def on_start(self, started: LoadStarted) -> None:
        unix_s = started.start_unix_ns / 1e9
        at = datetime.fromtimestamp(unix_s).astimezone().isoformat(" ", "milliseconds")
        self._file.write(f"#[StartTime: {unix_s:.3f} (seconds since epoch), {at}]\n")
        self._file.write('"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n')

    def on_interval(self, interval: Interval) -> None:
        payload = histogram.deflated(histogram.bytes_of_text(interval.histogram)).decode("ascii")
        length_s, max_ms = interval.end_s - interval.start_s, (interval.response_time_us.max or 0.0) / 1e3
        self._file.write(f"{interval.start_s:.3f},{length_s:.3f},{max_ms:.3f},{payload}\n")

    def __exit__(self, *_: object) -> None:
        self._file.close()
