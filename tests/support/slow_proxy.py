# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A network that is far away: a TCP proxy that holds what clients send for a while, and passes it on in order.

::

    with SlowProxy(listen=("127.0.0.2", 9092), target=("127.0.0.1", 9092)) as proxy:
        proxy.delay_seconds = 1.2
"""

from __future__ import annotations

import asyncio
import contextlib
import threading


class SlowProxy:
    """Forwards every connection until the end of the block.

    `delay_seconds`: of what clients send from now on; answers take none.
    """

    def __init__(self, listen: tuple, target: tuple, delay_seconds: float = 0.0):
        self._listen, self._target = listen, target
        self.delay_seconds = delay_seconds
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> SlowProxy:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result(30)
        return self

    def __exit__(self, *_exc) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _begin(self) -> None:
        self._server = await asyncio.start_server(self._serve, *self._listen)

    async def _end(self) -> None:
        self._server.close()
        every = asyncio.all_tasks() - {asyncio.current_task()}
        for task in every:
            task.cancel()
        await asyncio.gather(*every, return_exceptions=True)

    async def _serve(self, reader, writer) -> None:
        # cancelled at the end of the block
        ended = (OSError, asyncio.CancelledError)
        with contextlib.suppress(*ended), contextlib.closing(writer):
            there, back = await asyncio.open_connection(*self._target)
            with contextlib.closing(back):
                ways = [self._pass(reader, back, True), self._pass(there, writer, False)]
                tasks = [asyncio.ensure_future(way) for way in ways]
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in tasks:
                        task.cancel()

    async def _pass(self, reader, writer, slow: bool) -> None:
        """Pass on what comes, until one side ends."""
        held: asyncio.Queue = asyncio.Queue()

        async def send() -> None:
            while True:
                due, data = await held.get()
                await asyncio.sleep(max(0.0, due - self._loop.time()))
                if not data:
                    return
                writer.write(data)
                await writer.drain()

        sending = asyncio.ensure_future(send())
        try:
            while not sending.done():
                data = await reader.read(1 << 16)
                held.put_nowait((self._loop.time() + self.delay_seconds * slow, data))
                if not data:
                    break
            await sending
        except OSError:
            pass
        finally:
            sending.cancel()
