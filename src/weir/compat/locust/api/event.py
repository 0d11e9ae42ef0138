"""`locust.event`: functions of the locustfile that are called when something happens."""

import logging
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from weir.compat.locust.api.exception import InterruptTaskSet, RescheduleTask, RescheduleTaskImmediately, StopUser, missing
from weir.compat.locust.recorder import Recorder
from weir.compat.locust.tally import Measured

Handler = Callable[..., Any]

_STEERING = (StopUser, RescheduleTask, RescheduleTaskImmediately, InterruptTaskSet)
_MISSING = {
    **dict.fromkeys(("request_success", "request_failure"), "of Locust before 2.0; now events.request, with exception=None of a success"),
    **dict.fromkeys(("hatch_complete", "locust_start_hatching"), "of the locustio of 2019; now events.spawning_complete and test_start"),
    "locust_error": "of the locustio of 2019; now events.user_error",
    **dict.fromkeys(
        ("report_to_master", "worker_report", "worker_connect", "heartbeat_sent", "heartbeat_received", "cpu_warning", "usage_monitor"),
        "weir's workers report to weir itself, and it says how busy they were; the events are init, test_start, test_stopping, test_stop, "
        "request, user_error, spawning_complete, quitting and quit",
    ),
}  # fmt: skip


class EventHook:
    """Something that happens, and who wants to know."""

    def __init__(self) -> None:
        self._handlers: list[Handler] = []

    def add_listener(self, handler: Handler) -> Handler:
        """Has a function called when it happens; serves as a decorator."""
        self._handlers.append(handler)
        return handler

    def remove_listener(self, handler: Handler) -> None:
        """No longer."""
        self._handlers.remove(handler)

    def fire(self, *, reverse: bool = False, **facts: Any) -> None:
        """It happens. What a listener raises is logged; what steers a user goes through."""
        for handler in list(reversed(self._handlers) if reverse else self._handlers):
            try:
                handler(**facts)
            except _STEERING:
                raise
            except Exception:
                logging.getLogger(__name__).error("Uncaught exception in an event listener:\n%s", traceback.format_exc())


class RequestHook(EventHook):
    """`events.request`: fired by the file's own clients it is also how their requests are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.recorder: Recorder | None = None

    def fire(self, *, reverse: bool = False, **facts: Any) -> None:
        """A request of a client of the file's own has ended: `response_time` is in milliseconds, None where there is none."""
        error = facts.get("exception")
        took_ms = facts.get("response_time")
        if self.recorder is not None and took_ms is not None:
            measured = Measured(
                service_ns=max(0, int(took_ms * 1e6)),
                error=None if error is None else "check",
                received_bytes=int(facts.get("response_length") or 0),
            )
            self.recorder.record(str(facts.get("request_type", "")), str(facts.get("name", "")), measured, told(error))
        super().fire(reverse=reverse, **facts)

    def tell(self, **facts: Any) -> None:
        """A request that was counted already has ended."""
        if self._handlers:
            super().fire(**facts)

    @contextmanager
    def measure(self, request_type: str, name: str, response_length: int = 0, context: Any = None) -> Iterator[dict[str, Any]]:
        """Times what is inside and fires the event of it; what that raises is its failure."""
        facts: dict[str, Any] = {
            "request_type": request_type,
            "name": name,
            "response_length": response_length,
            "context": context or {},
            "exception": None,
            "start_time": time.time(),
        }
        began_ns = time.monotonic_ns()
        try:
            yield facts
        except Exception as error:
            facts["exception"] = error
        finally:
            facts["response_time"] = (time.monotonic_ns() - began_ns) / 1e6
            self.fire(**facts)


class Events:
    """All that can happen."""

    def __init__(self) -> None:
        self.request = RequestHook()
        self.user_error = EventHook()
        self.init = EventHook()
        self.init_command_line_parser = EventHook()
        self.test_start = EventHook()
        self.test_stopping = EventHook()
        self.test_stop = EventHook()
        self.spawning_complete = EventHook()
        self.reset_stats = EventHook()
        self.quitting = EventHook()
        self.quit = EventHook()

    def __getattr__(self, name: str) -> NoReturn:
        """Says what there is in place of events that weir does not have."""
        if name in _MISSING:
            missing(f"locust.events.{name}", _MISSING[name])
        raise AttributeError(f"locust.events has no {name}")


def told(error: object) -> str:
    """What is told of a failure, the same for the same: addresses of objects are left out."""
    if error is None:
        return ""
    text = repr(error)
    begin = text.find(" at 0x")
    end = text.find(">", begin)
    return text if begin < 0 or end < 0 else f"{text[:begin]} at 0x....{text[end:]}"
