"""FastMCP's client."""

from suite import FastMcp, cases

globals().update(cases(FastMcp))
