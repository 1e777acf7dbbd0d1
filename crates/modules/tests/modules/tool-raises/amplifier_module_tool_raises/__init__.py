async def mount(coordinator, config=None):
    raise ValueError("no key configured")
