"""Drivers of objects whose service reports a state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from stoker_openstack.cloud.drivers.base import Done, Driver, Result, Run


class StatedDriver(Driver):
    """A driver of objects with a state, by which the service says that an object is broken."""

    def check(self, run: Run, observed: Mapping[str, Any]) -> Result:
        self.refuse_broken(observed)
        return Done(observed)

    @abstractmethod
    def refuse_broken(self, observed: Mapping[str, Any]) -> None:
        """Raise CloudFailure if the object is broken."""
