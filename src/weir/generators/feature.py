"""What a load asks of its generator beyond one request, sent again and again over connections that stay open."""

from collections.abc import Iterator
from enum import StrEnum

from weir.model.load import ClosedLoad, LoadPlan, OpenLoad


class Feature(StrEnum):
    """One such thing. Its value follows "cannot" in a sentence."""

    SCENARIO = "follow a scenario"
    TARGETS = "ask several targets"
    PIPELINE = "pipeline requests"
    UNIX_SOCKET = "connect to a Unix socket"
    ADDRESS = "connect to another address than that of the URL"
    LOCAL_ADDRESSES = "connect from addresses that it is told"
    KERNEL_TIMESTAMPS = "take the kernel's timestamps"
    REQUEST_LOG = "keep a log of its requests"
    FIRST_FAILURE = "end at the first failure"
    NEW_CONNECTIONS = "make a connection for each request"
    TLS_FILES = "be told authorities, certificates or server names of TLS"
    REQUESTS = "end after a number of requests"
    THINK = "pause between an answer and the next request"
    PACE = "keep a user's pace"
    LOOPS = "have users who leave after some requests"
    CHANGING_USERS = "change the number of its users"
    RATE = "ask at a rate without waiting for answers"
    CHANGING_RATE = "change its rate"
    POISSON = "draw Poisson arrivals"
    SESSIONS = "have sessions arrive"


def features_of(plan: LoadPlan) -> list[Feature]:
    """All that a plan asks for, in the order above."""
    tls = plan.tls
    asked = {
        Feature.SCENARIO: plan.scenario is not None,
        Feature.TARGETS: bool(plan.targets),
        Feature.PIPELINE: plan.pipeline != 1,
        Feature.UNIX_SOCKET: plan.request.target.startswith("unix:"),
        Feature.ADDRESS: plan.address is not None,
        Feature.LOCAL_ADDRESSES: bool(plan.local_addresses),
        Feature.KERNEL_TIMESTAMPS: plan.kernel_timestamps,
        Feature.REQUEST_LOG: plan.request_log is not None,
        Feature.FIRST_FAILURE: plan.until_first_failure,
        Feature.NEW_CONNECTIONS: not plan.keep_alive,
        Feature.TLS_FILES: tls is not None and any((tls.ca, tls.certificate, tls.key, tls.server_name)),
        Feature.REQUESTS: plan.requests is not None,
    }
    return [feature for feature, is_asked in asked.items() if is_asked] + list(_of_load(plan.load))


def _of_load(load: ClosedLoad | OpenLoad) -> Iterator[Feature]:
    match load:
        case ClosedLoad(users, think, loops, pace_s):
            asked = {
                Feature.THINK: think is not None,
                Feature.PACE: pace_s is not None,
                Feature.LOOPS: loops is not None,
                Feature.CHANGING_USERS: isinstance(users, tuple),
            }
        case OpenLoad(rate_rps, _, arrivals, session):
            asked = {
                Feature.RATE: True,
                Feature.CHANGING_RATE: isinstance(rate_rps, tuple),
                Feature.POISSON: arrivals == "poisson",
                Feature.SESSIONS: session is not None,
            }
    return (feature for feature, is_asked in asked.items() if is_asked)
