"""Tests the handle of a running load."""

from typing import cast

from weir.generators.handle import LoadHandle
from weir.model.load_records import LoadEnd

END = cast(LoadEnd, object())


class Load(LoadHandle):
    """A load that raises KeyboardInterrupt unless it was stopped before."""

    stops = 0

    def stop(self) -> None:
        self.stops += 1

    def wait(self, timeout_s: float | None = None) -> bool:
        return True

    def result(self) -> LoadEnd:
        if not self.stops:
            raise KeyboardInterrupt
        return END

    def close(self) -> None:
        pass


def test_ctrl_c_stops_a_load_and_those_beside_it_once_and_keeps_the_result() -> None:
    load, other = Load(), Load()
    assert load.result_or_stop(load, other) is END
    assert (load.stops, other.stops) == (1, 1)
    assert other.result_or_stop() is END
    assert other.stops == 1
