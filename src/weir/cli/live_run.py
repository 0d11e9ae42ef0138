"""`weir run --live`: a page of a run. Connects the lab with `weir.live`; neither knows of the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from weir.cli.live import came_to, listener_of, page, stop_button, told_the_end
from weir.lab.blocks import Progress, trial_s
from weir.lab.onlooker import Onlooker, Skip
from weir.model.run import TrialResult
from weir.study.study import PlannedCell

if TYPE_CHECKING:
    from weir.live import Board


@dataclass(frozen=True, slots=True)
class Shown:
    """What the page of a run is about."""

    title: str
    question: str
    control: tuple[int, ...]
    """The CPUs of weir's control."""
    last_block: int | None = None
    """None where nobody knows."""


@contextmanager
def live_run(progress: Progress, shown: Shown, *, listen: str | None, report: Path) -> Iterator[Progress]:
    """A page of a run while what is inside goes on; gives the progress that tells it, and whoever was told before.

    Args:
        progress: who was told before.
        shown: what the page is about.
        listen: `--listen`.
        report: where the run's report will be.
    """
    from weir.live import About, Board, Controls

    skip = Skip()
    board = Board(About(shown.title, shown.question), Controls(stop=stop_button(), skip=skip.ask))
    with page(board, listen, cpus=shown.control), told_the_end(board, f"The run is over. Its report: {report.resolve()}"):
        yield _told_too(progress, board, skip, shown.last_block)


def _told_too(progress: Progress, board: "Board", skip: Skip, last_block: int | None) -> Progress:
    from weir.live import TrialBegun

    def step(text: str) -> None:
        progress.on_step(text)
        board.step(text)

    def begin(number: int, total: int | None, planned: PlannedCell, block: int) -> None:
        progress.on_trial(number, total, planned, block)
        board.begin_trial(
            TrialBegun(
                number=number + 1,
                total=total,
                block=block,
                blocks=last_block,
                name=planned.cell.stack_label,
                point=planned.cell.point_label,
                duration_s=None if planned.load.ends_by_itself else planned.load.duration_s,
                requests=planned.load.requests,
                planned_s=trial_s(planned),
            )
        )

    def end(planned: PlannedCell, result: TrialResult) -> None:
        progress.on_result(planned, result)
        board.end_trial(came_to(result.verdict, result.summary))

    onlooker = Onlooker(on_logs=board.show_logs, load=listener_of(board), on_sample=board.take_sample, skip=skip)
    return replace(progress, on_step=step, on_trial=begin, on_result=end, onlooker=onlooker)
