"""The summary of the part of a load that counts, from its intervals. Of what intervals do not hold nothing is said."""

from collections.abc import Sequence

from weir.model import histogram
from weir.model.merged import times_of
from weir.model.records import ByteCounts, ErrorCounts, Interval, LoadSummary, Quantiles, RequestCounts


def summary_of_part(whole: LoadSummary, intervals: Sequence[Interval]) -> tuple[LoadSummary, bytes]:
    """The summary of some intervals in a row, and the histogram of their response times.

    All intervals together give the engine's own figures of the whole, to the resolution of the histograms (three significant digits).

    Args:
        whole: the engine's summary of the whole load: target, generator and the generator's own verdict are taken from it.
        intervals: at least one, up to the end of the load.
    """
    first, last = intervals[0], intervals[-1]
    duration_s = last.end_s - first.start_s
    ok, failed, completed = (sum(getattr(one, name) for one in intervals) for name in ("ok", "failed", "completed"))
    errors = {kind: sum(getattr(one.errors, kind) for one in intervals) for kind in ErrorCounts.model_fields}
    merged = histogram.merge(histogram.bytes_of_text(one.histogram) for one in intervals)
    largest_us = max((one.response_time_us.max for one in intervals if one.response_time_us.max is not None), default=None)
    # A request belongs to the part in which it ends; what had not ended by its end was asked for in it as well.
    unanswered, unsent = whole.requests.unanswered, whole.requests.unsent
    summary = LoadSummary(
        schema_number=whole.schema_number,
        target=whole.target,
        duration_s=duration_s,
        requests=RequestCounts(
            intended=ok + failed + unanswered + unsent,
            sent=sum(one.sent for one in intervals),
            completed=completed,
            ok=ok,
            failed=failed,
            unanswered=unanswered,
            unsent=unsent,
        ),
        throughput_rps=completed / duration_s,
        # Intervals do not count statuses: of several nobody can say which part they fell into.
        status=dict.fromkeys(whole.status, completed) if len(whole.status) == 1 else {},
        errors=ErrorCounts(**errors),
        response_time_us=times_of(merged, largest_us),
        service_time_us=Quantiles(),
        schedule_lag_us=Quantiles(),
        connect_time_us=Quantiles(),
        time_to_first_byte_us=Quantiles(),
        bytes=ByteCounts(
            sent=sum(one.bytes_sent for one in intervals),
            received=sum(one.bytes_received for one in intervals),
            # Nor lengths: only where all are the same is it known what they come to.
            received_body=0 if whole.first_answer is None or whole.other_length else completed * whole.first_answer.body_bytes,
        ),
        generator=whole.generator,
        verdict=whole.verdict,
    )
    return summary, histogram.raw_bytes(merged)
