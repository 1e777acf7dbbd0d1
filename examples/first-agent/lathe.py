"""Speeds for turning on a lathe."""

import math


def spindle_speed(cutting_speed, diameter):
    """Revolutions per minute, from the cutting speed in metres per minute and the diameter in millimetres."""
    return round(1000 * cutting_speed / (math.pi * diameter / 2))
