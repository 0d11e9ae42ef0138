"""A coroutine per connection on asyncio's own event loop."""

import asyncio
import contextlib

from answering import ANSWER, END_OF_HEAD, asked


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        await reader.readuntil(END_OF_HEAD)
        writer.write(ANSWER)
        await writer.drain()
    writer.close()


async def main() -> None:
    where = asked()
    server = await asyncio.start_server(answer, where.address, where.port, backlog=where.backlog)
    await server.serve_forever()


asyncio.run(main())
