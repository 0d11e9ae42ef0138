"""`locust.env`: what users and listeners of one worker can reach."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any, NoReturn

from weir.compat.locust.api.event import Events
from weir.compat.locust.api.exception import missing
from weir.compat.locust.clock import Clock
from weir.compat.locust.recorder import Recorder


class Environment:
    """Of one worker. Files are given one; they make none."""

    def __init__(
        self,
        *,
        events: Events,
        recorder: Recorder,
        clock: Clock,
        parsed_options: Namespace,
        user_classes: Sequence[Any],
        shape_class: Any,
    ) -> None:
        self.events = events
        self.recorder = recorder
        self.clock = clock
        self.parsed_options = parsed_options
        self.host: str | None = parsed_options.host
        self.user_classes = list(user_classes)
        self.shape_class = shape_class
        self.runner: Any = None
        self.web_ui = None
        self.catch_exceptions = True
        self.process_exit_code: int | None = None
        """What a listener of `quitting` wants weir to end with; None: what the requests say."""
        self._stats: Any = None

    @property
    def stats(self) -> Any:
        """What this worker has measured so far; for listeners of `quitting` what all of them have."""
        return self.recorder.figures() if self._stats is None else self._stats

    def give_stats(self, stats: Any) -> None:
        """The load is over, and this is what came of it."""
        self._stats = stats

    def __getattr__(self, name: str) -> NoReturn:
        """Says what there is in place of what weir does not have."""
        if name in ("create_local_runner", "create_master_runner", "create_worker_runner", "create_web_ui"):
            missing(f"environment.{name}", "weir starts the load itself; a file has users, and listeners of events")
        raise AttributeError(f"environment has no {name}")
