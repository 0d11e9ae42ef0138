"""Tests the viewers' events. Without viewers nothing is computed."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

from tests.support.records import interval, started
from weir.live import EventQueue, PageInfo, TrialStarted
from weir.live.broadcaster import Broadcaster

Stream = AsyncGenerator[bytes, None]


class CountingQueue(EventQueue):
    """A board that counts the calls of `changes`."""

    def __init__(self) -> None:
        super().__init__(PageInfo("A load"))
        self.asked = 0

    def changes(self) -> dict[str, Any] | None:
        self.asked += 1
        return super().changes()

    def put_interval(self, index: int) -> None:
        if index == 0:
            self.begin_trial(TrialStarted(number=1, name="http://127.0.0.1/", point="4 connections"))
            self.on_start(started())
        self.on_interval(interval(index, [1.0], length_s=0.5))


class CountingBroadcaster(Broadcaster):
    """A broadcaster that keeps its events."""

    built: ClassVar[list[bytes]] = []

    def _event(self, value: dict[str, Any]) -> bytes:
        event = super()._event(value)
        self.built.append(event)
        return event


def value(event: bytes) -> dict[str, Any]:
    """Returns the data of an event."""
    head, data, *rest = event.decode("ascii").split("\n")
    assert head.startswith("id: ")
    assert rest == ["", ""]
    found: dict[str, Any] = json.loads(data.removeprefix("data: "))
    return found


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs a scene on a new thread, because the browser of other tests keeps an event loop on this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, scene()).result()


async def joined(hub: Broadcaster) -> tuple[Stream, dict[str, Any]]:
    """Returns a new viewer's stream and its first event."""
    stream = hub.stream()
    assert (await anext(stream)).startswith(b"retry: ")
    return stream, value(await anext(stream))


def test_who_comes_is_told_everything_first_and_then_what_is_new() -> None:
    async def scene() -> None:
        board = CountingQueue()
        hub = Broadcaster(board, period_s=0)
        board.put_interval(0)
        stream, first = await joined(hub)
        assert (first["kind"], first["points"]["rate_rps"]) == ("whole", [2])
        # Existing points are sent once more to all viewers, which changes nothing for those who have them.
        assert value(await anext(stream))["points"]["rate_rps"] == [2]
        board.put_interval(1)
        news = value(await anext(stream))
        assert (news["kind"], news["points"]["first"], news["points"]["rate_rps"]) == ("news", 0, [2, 2])
        board.put_interval(2)
        assert value(await anext(stream))["points"]["first"] == 1
        await stream.aclose()

    play(scene)


def test_all_viewers_get_the_same_message_which_is_built_once() -> None:
    async def scene() -> None:
        board = CountingQueue()
        hub = CountingBroadcaster(board, period_s=0)
        streams = [(await joined(hub))[0] for _ in range(3)]
        hub.built.clear()
        board.put_interval(0)
        messages = [await anext(stream) for stream in streams]
        assert messages == hub.built * 3
        assert len(hub.built) == 1
        for stream in streams:
            await stream.aclose()

    play(scene)


def test_nothing_is_computed_while_nobody_looks() -> None:
    async def scene() -> None:
        board = CountingQueue()
        hub = Broadcaster(board, period_s=0)
        board.put_interval(0)
        for _ in range(100):
            await asyncio.sleep(0)
        assert board.asked == 0
        stream, _ = await joined(hub)
        board.put_interval(1)
        await anext(stream)
        await stream.aclose()
        assert hub.viewers == 0
        assert hub._publishing is not None
        await hub._publishing
        asked = board.asked
        assert asked > 0
        board.put_interval(2)
        for _ in range(100):
            await asyncio.sleep(0)
        assert board.asked == asked

    play(scene)


def test_viewers_are_told_at_most_twice_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    sleep = asyncio.sleep

    async def no_sleep(seconds: float) -> None:
        waited.append(seconds)
        await sleep(0)

    async def scene() -> None:
        board = CountingQueue()
        hub = Broadcaster(board)
        stream, _ = await joined(hub)
        monkeypatch.setattr(asyncio, "sleep", no_sleep)
        for index in range(5):
            board.put_interval(index)
            await anext(stream)
        monkeypatch.undo()
        await stream.aclose()
        assert set(waited) == {0.5}
        # The board was asked as often as the broadcaster had waited; the first wait uses the clock's own sleep.
        assert board.asked <= len(waited) + 1

    play(scene)


def test_a_viewer_who_is_too_slow_is_told_everything_anew_and_keeps_nobody_waiting() -> None:
    async def scene() -> None:
        board = CountingQueue()
        hub = Broadcaster(board, period_s=0)
        slow, _ = await joined(hub)
        quick, _ = await joined(hub)
        for index in range(40):
            board.put_interval(index)
            assert value(await anext(quick))["kind"] == "news"
        anew = value(await anext(slow))
        assert (anew["kind"], len(anew["points"]["rate_rps"])) == ("whole", 40)
        await slow.aclose()
        await quick.aclose()

    play(scene)


def test_at_the_end_all_are_told_the_last_news_and_the_streams_end() -> None:
    async def scene() -> None:
        board = CountingQueue()
        hub = Broadcaster(board, period_s=0)
        streams = [(await joined(hub))[0] for _ in range(2)]
        board.end("over")
        hub.finish()
        for stream in streams:
            told = [value(event) async for event in stream if event]
            assert told[-1]["ended"] == "over"
        late, first = await joined(hub)
        assert first["ended"] == "over"
        assert [event async for event in late] == []

    play(scene)


def test_nothing_in_a_name_can_end_an_event() -> None:
    async def scene() -> None:
        board = EventQueue(PageInfo("a\n\ndata: {}\r\n\u2028\ud800</script>"))
        hub = Broadcaster(board, period_s=0)
        stream, first = await joined(hub)
        assert first["about"]["title"] == "a\n\ndata: {}\r\n\u2028\ud800</script>"
        await stream.aclose()

    play(scene)
