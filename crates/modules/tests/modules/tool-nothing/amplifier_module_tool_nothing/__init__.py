async def mount(coordinator, config=None):
    return None
