"""Checks of values that name objects of a cloud: Heat's custom constraints."""

from __future__ import annotations

import time
from collections.abc import Callable

from stoker.failures import ServiceRejected, ServiceUnavailable
from stoker_openstack.cloud.client import limit_time
from stoker_openstack.cloud.errors import CloudFailure, RetryLater
from stoker_openstack.cloud.names import CloudLogin
from stoker_openstack.model import CONSTRAINTS

#: Seconds that all checks of one request may take together, so that the request is answered while the cloud hangs.
_PATIENCE = 10.0
#: The kinds of errors that say something about the value; all others leave the value unchecked.
_PROBLEMS = ("EntityNotFound", "PhysicalResourceNameAmbiguity")


class CloudConstraints:
    """
    Implements ``stoker.backends.provider.Constraints`` for one request.

    ``open_login`` is called at the first value. Each value is looked up once. After an error of a constraint's service,
    further values of the constraint are not checked.
    """

    def __init__(self, open_login: Callable[[], CloudLogin]) -> None:
        self._open_login = open_login
        self._login: CloudLogin | None = None
        self._results: dict[tuple[str, str], str | None] = {}
        self._unchecked: dict[str, str] = {}
        self._seconds_left = _PATIENCE

    def find_problem(self, constraint: str, value: str) -> str | None:
        """Return why the cloud has no such object, in Heat's words; None if it has one or cannot say."""
        if constraint not in CONSTRAINTS or not value or constraint in self._unchecked:
            return None
        key = (constraint, value)
        if key not in self._results:
            began = time.monotonic()
            try:
                with limit_time(self._seconds_left):
                    self._results[key] = self._look_up(constraint, value)
            except (CloudFailure, RetryLater, ServiceRejected, ServiceUnavailable) as error:
                self._unchecked[constraint] = " ".join(str(error).split())
                return None
            finally:
                self._seconds_left -= time.monotonic() - began
        return self._results[key]

    def warnings(self) -> list[str]:
        """Return a warning for each constraint whose values the cloud did not check."""
        return [
            f"Values of {constraint} were not checked: {reason}"
            for constraint, reason in sorted(self._unchecked.items())
        ]

    def _look_up(self, constraint: str, value: str) -> str | None:
        if self._login is None:
            self._login = self._open_login()
        try:
            self._login.resolve(CONSTRAINTS[constraint], value)
        except CloudFailure as error:
            if error.kind in _PROBLEMS:
                return f"Error validating value '{value}': {error}"
            raise
        return None
