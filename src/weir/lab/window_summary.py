"""Summarizes a part of a load from the part's intervals. Figures that intervals lack stay empty."""

from collections.abc import Sequence

from weir.model.hdr import bytes_of_text
from weir.model.hdr_batch import merge
from weir.model.load_records import ByteCounts, ErrorCounts, Interval, LoadSummary, Quantiles, RequestCounts


def summarize_window(whole: LoadSummary, intervals: Sequence[Interval]) -> tuple[LoadSummary, bytes]:
    """Returns the summary of consecutive intervals, and the encoded histogram of their response times. For all
    intervals of a load, the result equals the engine's summary (percentiles to three significant digits). `whole`, the
    summary of the whole load, has the target, the generator and the generator's verdict."""
    first_response = whole.first_response
    ok, failed, completed = (sum(getattr(one, name) for one in intervals) for name in ("ok", "failed", "completed"))
    errors = {kind: sum(getattr(one.errors, kind) for one in intervals) for kind in ErrorCounts.names()}
    merged = merge([bytes_of_text(one.histogram) for one in intervals])
    largest_us = max((one.response_time_us.max for one in intervals if one.response_time_us.max), default=None)
    # A request belongs to the part in which it ends. The last part also has the requests open at the end.
    unanswered, unsent = whole.requests.unanswered, whole.requests.unsent
    counts = {"completed": completed, "ok": ok, "failed": failed, "unanswered": unanswered, "unsent": unsent}
    intended, sent = ok + failed + unanswered + unsent, sum(one.sent for one in intervals)
    summary = LoadSummary.from_figures(
        # Intervals do not count repeated requests, so only the whole load has this number.
        RequestCounts(intended=intended, sent=sent, retried=whole.requests.retried, **counts),
        intervals[-1].end_s - intervals[0].start_s,
        target=whole.target,
        # Intervals do not count statuses. The counts are known only if all responses have the same status.
        status=dict.fromkeys(whole.status, completed) if len(whole.status) == 1 else {},
        errors=ErrorCounts(**errors),
        response_time_us=Quantiles.from_counts(merged.counts, largest_us),
        bytes=ByteCounts(
            sent=sum(one.bytes_sent for one in intervals),
            received=sum(one.bytes_received for one in intervals),
            # Intervals do not count body bytes. The total is known only if all bodies have the same length.
            received_body=completed * first_response.body_bytes if first_response and not whole.other_length else 0,
        ),
        generator=whole.generator,
        verdict=whole.verdict,
    )
    return summary, merged.encode()
