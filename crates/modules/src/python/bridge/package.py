"""The Python side of the bridge between a host and modules written for Amplifier."""
