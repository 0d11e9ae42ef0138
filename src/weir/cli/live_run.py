"""`weir run --live`: a page of a run. Connects the lab with `weir.live`; neither knows of the other."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from weir.cli.live import came_to, page, stop_button, told_the_end
from weir.generators.engine import LoadListener
from weir.lab.blocks import Progress
from weir.lab.onlooker import Extension, Onlooker, Skip
from weir.model.records import Interval, LoadEvent, LoadStarted, Sample
from weir.model.run import TrialResult
from weir.study.study import PlannedCell

if TYPE_CHECKING:
    from weir.live import TrialBegun, TrialEnded


@dataclass(frozen=True, slots=True)
class Shown:
    """What the page of a run is about."""

    title: str
    question: str
    control: tuple[int, ...] = ()
    """The CPUs of weir's control; empty: any."""
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

    skip, extension = Skip(), Extension()
    extend = extension.ask if shown.last_block is not None else None
    board = Board(About(shown.title, shown.question), Controls(stop=stop_button(), skip=skip.ask, extend=extend))
    with page(board, listen, cpus=shown.control), told_the_end(board, f"The run is over. Its report: {report.resolve()}"):
        yield told_too(progress, board, skip, extension, shown.last_block)


class Told(Protocol):
    """Who is told of a run as a page's board is: that, or lines to one on another machine."""

    def step(self, text: str) -> None:
        """See `Board`."""

    def begin_trial(self, trial: "TrialBegun") -> None:
        """See `Board`."""

    def show_logs(self, files: Mapping[str, Path]) -> None:
        """See `Board`."""

    def begin_load(self, started: LoadStarted) -> None:
        """See `Board`."""

    def take_interval(self, interval: Interval) -> None:
        """See `Board`."""

    def take_sample(self, sample: Sample) -> None:
        """See `Board`."""

    def take_event(self, event: LoadEvent) -> None:
        """See `Board`."""

    def end_trial(self, ended: "TrialEnded") -> None:
        """See `Board`."""


def told_too(progress: Progress, board: Told, skip: Skip, extension: Extension, last_block: int | None) -> Progress:
    """A progress that tells a board, and whoever was told before."""
    from weir.live import TrialBegun

    def step(text: str) -> None:
        progress.on_step(text)
        board.step(text)

    def begin(number: int, total: int | None, planned: PlannedCell, block: int, left_s: float | None) -> None:
        progress.on_trial(number, total, planned, block, left_s)
        board.begin_trial(
            TrialBegun(
                number=number + 1,
                total=total,
                block=block,
                blocks=None if last_block is None else last_block + extension.blocks,
                name=planned.cell.stack_label,
                point=planned.cell.point_label,
                duration_s=None if planned.load.ends_by_itself else planned.load.duration_s,
                requests=planned.load.requests,
                planned_s=planned.trial_s,
            )
        )

    def end(planned: PlannedCell, result: TrialResult) -> None:
        progress.on_result(planned, result)
        board.end_trial(came_to(result.verdict, result.summary))

    load = LoadListener(on_start=board.begin_load, on_interval=board.take_interval, on_event=board.take_event)
    onlooker = Onlooker(on_logs=board.show_logs, load=load, on_sample=board.take_sample, skip=skip, extension=extension)
    return replace(progress, on_step=step, on_trial=begin, on_result=end, onlooker=onlooker)
