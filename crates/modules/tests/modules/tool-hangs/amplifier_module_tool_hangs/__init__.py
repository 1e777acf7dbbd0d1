import time


async def mount(coordinator, config=None):
    time.sleep(3600)
