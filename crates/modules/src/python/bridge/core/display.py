"""Showing something to a person."""


class DisplaySystem:
    """Whoever can show something has `show_message`."""
