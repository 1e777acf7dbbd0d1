"""Waiting for something to become true, with an end. No test sleeps and hopes."""

import time


class TooLate(AssertionError):
    """What was waited for did not happen in time."""


def until(condition, seconds, what, pause=0.02):
    """Gives the condition's first true value. For things that cannot tell by themselves, such as a process."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise TooLate(f"not within {seconds} s: {what}")
        time.sleep(pause)


class Stopwatch:
    """How long something took, for the time limits of the protocol."""

    def __init__(self):
        self._start = time.monotonic()

    @property
    def seconds(self):
        return time.monotonic() - self._start
