"""Lists the features of a load that some tools do not support."""

from enum import StrEnum

from weir.model.load import ClosedLoad, LoadPlan, OpenLoad


class Feature(StrEnum):
    """A feature of a load. The value completes a sentence such as "wrk cannot …"."""

    SCENARIO = "follow a scenario"
    TARGETS = "send requests to several targets"
    PIPELINE = "pipeline requests"
    UNIX_SOCKET = "connect to a Unix socket"
    ADDRESS = "connect to another address than the URL's"
    LOCAL_ADDRESSES = "connect from given addresses"
    KERNEL_TIMESTAMPS = "take the kernel's timestamps"
    REQUEST_LOG = "write a log of its requests"
    FIRST_FAILURE = "end at the first failure"
    NEW_CONNECTIONS = "make a connection for each request"
    TLS_FILES = "use given TLS authorities, certificates or server names"
    REQUESTS = "end after a number of requests"
    FEW_REQUESTS = "send fewer requests than it has connections"
    CLOSED = "run a closed loop: it needs a rate"
    THINK = "pause between a response and the next request"
    PACE = "start a user's requests at a fixed pace"
    LOOPS = "have users who leave after some requests"
    CHANGING_USERS = "change the number of its users"
    RATE = "send requests at a rate without waiting for responses"
    REQUESTS_AT_A_RATE = "end after a number of requests at a rate"
    CHANGING_RATE = "change its rate"
    POISSON = "draw Poisson arrivals"
    SESSIONS = "generate arrivals of sessions"


def list_features(plan: LoadPlan) -> list[Feature]:
    """Returns the features that a plan uses, in the order of `Feature`."""
    tls, requests = plan.tls, plan.requests
    used = {
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
        Feature.REQUESTS: requests is not None,
        Feature.FEW_REQUESTS: requests is not None and requests < plan.load.connections,
    }
    match plan.load:
        case ClosedLoad(users, think, requests_per_user, pace_s):
            used |= {
                Feature.CLOSED: True,
                Feature.THINK: think is not None,
                Feature.PACE: pace_s is not None,
                Feature.LOOPS: requests_per_user is not None,
                Feature.CHANGING_USERS: isinstance(users, tuple),
            }
        case OpenLoad(rate_rps, _, arrivals, session):
            used |= {
                Feature.RATE: True,
                Feature.REQUESTS_AT_A_RATE: requests is not None,
                Feature.CHANGING_RATE: isinstance(rate_rps, tuple),
                Feature.POISSON: arrivals == "poisson",
                Feature.SESSIONS: session is not None,
            }
    return [feature for feature, is_used in used.items() if is_used]
