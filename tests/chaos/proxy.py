# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy between one agent and the daemon, which can fail as a network fails."""
import asyncio
import threading

CHUNK = 1 << 16
LOOK_SECONDS = 0.05


class Proxy:
    """Other threads set the faults; each holds until it is taken back."""

    def __init__(self, listen, target):
        self.listen, self.target = listen, target  # (address, port)
        self.drops = False   # closes every connection
        self.stalls = False  # passes nothing on
        self.delay = 0.0     # seconds for each piece
        self.halves = 0      # messages of the agent still to cut; the connection ends after each
        self.cut_bytes = 0   # that a cut left out
        self.loop = asyncio.new_event_loop()
        up = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(up,), daemon=True)
        self.thread.start()
        if not up.wait(10):
            raise OSError(f"cannot listen on {listen}")

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def _run(self, up):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self._serve, *self.listen))
        up.set()
        self.loop.run_forever()
        server.close()
        self.drops = True
        while connections := asyncio.all_tasks(self.loop):
            self.loop.run_until_complete(asyncio.wait(connections))
        self.loop.close()

    async def _serve(self, from_agent, to_agent):
        try:
            from_daemon, to_daemon = await asyncio.open_connection(*self.target)
        except OSError:
            to_agent.transport.abort()
            return
        ways = [asyncio.ensure_future(self._pass_on(from_agent, to_daemon, is_upward=True)),
                asyncio.ensure_future(self._pass_on(from_daemon, to_agent, is_upward=False)),
                asyncio.ensure_future(self._wait_for_drop())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            to_agent.close()
            to_daemon.close()

    async def _wait_for_drop(self):
        while not self.drops:
            await asyncio.sleep(LOOK_SECONDS)

    async def _pass_on(self, reader, writer, is_upward):
        try:
            while data := await reader.read(CHUNK):
                while self.stalls:
                    await asyncio.sleep(LOOK_SECONDS)
                await asyncio.sleep(self.delay)
                if is_upward and self.halves > 0:
                    self.halves -= 1
                    self.cut_bytes += len(data) - len(data) // 2
                    writer.write(data[:len(data) // 2])
                    await writer.drain()
                    return
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # one side has gone: the connection ends
