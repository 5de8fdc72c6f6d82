"""Errors of a cloud, as its drivers report them to the controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class CloudFailure(Exception):
    """
    The action on an object failed. ``kind`` is Heat's type of the error.

    ``observed`` is the service's representation of an object that is broken.
    """

    def __init__(self, message: str, kind: str = "Error", *, observed: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.observed = observed


#: From this HTTP status on, it is unknown whether a service has carried out a request.
INTERNAL_ERROR = 500


class CloudRefused(CloudFailure):
    """A service rejected a request. ``status``: the HTTP status; ``error_type``: Neutron's name of the error."""

    def __init__(self, message: str, kind: str, status: int, error_type: str = "") -> None:
        super().__init__(message, kind)
        self.status = status
        self.error_type = error_type


class RetryLater(Exception):
    """
    An action cannot continue now. ``seconds`` is the pause; the message says what the action waits for.

    ``is_rejected``: the service rejected a request without any effect.
    """

    def __init__(self, message: str, seconds: float, *, is_rejected: bool = False) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.is_rejected = is_rejected
