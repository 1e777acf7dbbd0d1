"""Needs the library of Amplifier's own application."""

from amplifier_foundation import ProviderPreference


async def mount(coordinator, config=None):
    raise AssertionError(ProviderPreference)
