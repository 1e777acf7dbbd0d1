"""The client of the official Python SDK."""

from suite import Sdk, cases

globals().update(cases(Sdk))
