"""Tools that leave their work to tasks and threads, and start processes from there."""

import _thread
import asyncio
import concurrent.futures
import pathlib
import subprocess
import threading
import time

POOL = concurrent.futures.ThreadPoolExecutor(2)


class Restless:
    """One tool for each way."""

    description = "Works on where nobody looks"
    input_schema = {"type": "object"}

    def __init__(self, coordinator, name):
        self.coordinator = coordinator
        self.name = name

    async def execute(self, input):
        return await getattr(self, self.name)(input)

    def place(self, name):
        return pathlib.Path(self.coordinator.get_capability("session.working_dir"), name)

    async def work(self, input):
        """Starts a process, tells so, and another one when the first has been ended."""
        for _ in range(20):
            process = await asyncio.create_subprocess_exec("sleep", input["mark"], start_new_session=True)
            self.place(f"begun-{input['mark']}").touch()
            await process.wait()

    def work_of_thread(self, input):
        process = subprocess.Popen(["sleep", input["mark"]], start_new_session=True)
        self.place(f"begun-{input['mark']}").touch()
        process.wait()

    async def task(self, input):
        await asyncio.wait({asyncio.create_task(self.work(input))})

    async def shield(self, input):
        await asyncio.shield(self.work(input))

    async def task_of_task(self, input):
        async def between():
            self.kept = asyncio.create_task(self.work(input))
            await asyncio.shield(self.kept)

        await asyncio.create_task(between())

    async def task_left(self, input):
        self.kept = asyncio.create_task(self.work(input))
        return "left"

    async def later(self, input):
        """What a timer starts comes after the stop."""
        loop = asyncio.get_running_loop()
        loop.call_later(1, lambda: subprocess.Popen(["sleep", input["mark"]]))
        loop.call_later(1.1, self.place(f"late-{input['mark']}").touch)
        self.place(f"begun-{input['mark']}").touch()
        await asyncio.sleep(3600)

    async def thread(self, input):
        threading.Thread(target=self.work_of_thread, args=(input,), daemon=True).start()
        await asyncio.sleep(3600)

    async def raw_thread(self, input):
        _thread.start_new_thread(self.work_of_thread, (input,))
        await asyncio.sleep(3600)

    async def executor(self, input):
        await asyncio.get_running_loop().run_in_executor(None, self.work_of_thread, input)

    async def own_pool(self, input):
        await asyncio.wrap_future(POOL.submit(self.work_of_thread, input))

    async def thread_left(self, input):
        threading.Thread(target=self.work_of_thread, args=(input,), daemon=True).start()
        while not self.place(f"begun-{input['mark']}").exists():
            await asyncio.sleep(0.01)
        return "left"

    async def thread_for_ever(self, input):
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
        self.place(f"begun-{input['mark']}").touch()
        await asyncio.sleep(3600)

    async def idle(self, input):
        """Uses the pools, and leaves their threads waiting for more."""
        await asyncio.to_thread(time.sleep, 0)
        await asyncio.wrap_future(POOL.submit(time.sleep, 0))
        self.place(f"begun-{input['mark']}").touch()
        await asyncio.sleep(3600)


NAMES = [name for name, value in vars(Restless).items() if asyncio.iscoroutinefunction(value)]


async def mount(coordinator, config=None):
    for name in NAMES:
        if name not in ("execute", "work"):
            await coordinator.mount("tools", Restless(coordinator, name), name=name)
