"""What `weir run` shows at a terminal while a load goes on: the lines of `weir load`, gone when the trial ends."""

from dataclasses import replace

from weir.cli.live_view import LiveView
from weir.generators.engine import LoadListener
from weir.lab.blocks import Progress
from weir.model.load import Request
from weir.model.records import Interval, LoadStarted
from weir.model.run import TrialResult
from weir.study.study import PlannedCell


class RunView:
    """The lines of the trial that goes on. A context manager that leaves nothing behind.

    Trials are told on the main thread, intervals on the thread that reads them: the view of a trial is there before its load begins.
    """

    def __init__(self) -> None:
        self._planned: PlannedCell | None = None
        self._view: LiveView | None = None

    def told(self, progress: Progress) -> Progress:
        """The progress that tells this view, and whoever was told before."""

        def begin(number: int, total: int | None, planned: PlannedCell, block: int, left_s: float | None) -> None:
            progress.on_trial(number, total, planned, block, left_s)
            self._planned = planned

        def end(planned: PlannedCell, result: TrialResult) -> None:
            self.close()
            progress.on_result(planned, result)

        def start(record: LoadStarted) -> None:
            self._open(record)
            before.on_start(record)

        def take(interval: Interval) -> None:
            if self._view is not None:
                self._view.take(interval)
            before.on_interval(interval)

        before = progress.onlooker.load
        onlooker = replace(progress.onlooker, load=LoadListener(on_start=start, on_interval=take, on_event=before.on_event))
        return replace(progress, on_trial=begin, on_result=end, onlooker=onlooker)

    def close(self) -> None:
        """Takes the lines away. Closing twice does nothing."""
        if self._view is not None:
            self._view.close()
            self._view = None

    def _open(self, record: LoadStarted) -> None:
        planned = self._planned
        if planned is None:
            return
        named = Request("GET", f"{planned.cell.stack_label}, {planned.cell.point_label}")
        plan = planned.plan(named, targets=(), duration_s=planned.load.duration_s, interval_s=1.0, cpus=())
        self._view = LiveView(replace(plan, threads=max(1, record.threads)))
        self._view.start(record)

    def __enter__(self) -> "RunView":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
