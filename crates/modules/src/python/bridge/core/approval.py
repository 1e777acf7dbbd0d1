"""Asking a person."""


class ApprovalTimeoutError(Exception):
    """Nobody answered in time."""


class ApprovalSystem:
    """Whoever can ask a person has `request_approval`."""
