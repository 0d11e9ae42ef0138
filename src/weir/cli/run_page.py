"""Shows a run on a page in the browser (`weir run --live`). Connects the lab with the web server, `weir.live`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weir.cli.load_page import make_stop_button, page, summarize_end
from weir.lab.observer import RunControls, RunObserver, TrialStart
from weir.model.load_observer import LoadObservers
from weir.model.run_types import TrialResult
from weir.study.study import PlannedCell

if TYPE_CHECKING:
    from weir.cli.remote_control import BoardLines
    from weir.live import EventQueue


@dataclass(frozen=True, slots=True)
class Shown:
    """Facts about a run for the page."""

    title: str
    question: str
    control: tuple[int, ...] = ()
    """CPUs for weir's own process. Empty: any CPU."""
    last_block: int | None = None
    """Number of the last block. None: the stopping rule decides, or the last block is unknown."""


@contextmanager
def run_page(
    shown: Shown,
    skip: Callable[[], bool],
    extend: Callable[[], bool],
    *,
    listen: str | None,
    report: Path,
    is_here: bool = True,
) -> Iterator["EventQueue"]:
    """Serves a page of a run until the context ends. Yields the page's event queue.

    `report`: path of the report after the run. The page's buttons call `skip` and `extend`. `is_here`: a local run.
    """
    from weir.live import Controls, EventQueue, PageInfo

    buttons = Controls(stop=make_stop_button(), skip=skip, extend=None if shown.last_block is None else extend)
    board = EventQueue(PageInfo(shown.title, shown.question), buttons)
    last_text, cpus = f"The run is over. Its report: {report.resolve()}", shown.control if is_here else ()
    with page(board, listen, last_text, cpus=cpus, is_busy=is_here):
        yield board


class BoardObserver(LoadObservers, RunObserver):
    """An observer that passes a run's progress to a board: a page here, or lines for the driver's page. `controls`
    count the blocks that viewers have added. `last_block`: None if the stopping rule decides."""

    def __init__(self, board: "EventQueue | BoardLines", controls: RunControls, last_block: int | None) -> None:
        super().__init__(board)
        self._board, self._controls, self._last_block = board, controls, last_block

    def on_step(self, text: str) -> None:
        self._board.on_step(text)

    def on_trial_start(self, trial: TrialStart) -> None:
        from weir.live import TrialStarted

        planned, extra = trial.planned, self._controls.extra_blocks.blocks
        blocks = None if self._last_block is None else self._last_block + extra
        duration_s = None if planned.load.ends_by_itself else planned.duration_s
        start = TrialStarted(
            number=trial.number,
            total=trial.total,
            block=trial.block,
            blocks=blocks,
            name=planned.cell.stack_label,
            point=planned.cell.point_label,
            duration_s=duration_s,
            requests=planned.load.requests,
            planned_s=planned.trial_s,
        )
        self._board.begin_trial(start)

    def on_logs(self, files: Mapping[str, Path]) -> None:
        self._board.show_logs(files)

    def on_trial_end(self, planned: PlannedCell, result: TrialResult) -> None:
        self._board.end_trial(summarize_end(result.verdict, result.summary))
