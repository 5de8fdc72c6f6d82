"""Names of a trigger's targets for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from stoker_client.shapes import Target, TriggerLog


class TargetLabels:
    """
    Names a target by its server; if the server has several targets, as ``server/resource``, after the resource whose
    deployment the target repeats.
    """

    def __init__(self, targets: Iterable[Target] = ()) -> None:
        self._targets_of_server: Counter[str] = Counter()
        for target in targets:
            self.add(target)

    def add(self, target: Target) -> None:
        """Add a target that was not added before."""
        self._targets_of_server[target["server_id"]] += 1

    def of(self, target: Target | TriggerLog) -> str:
        """Return the name of a target, or of the target whose run has written a log chunk."""
        server = target.get("server_name") or target["server_id"]
        if self._targets_of_server[target["server_id"]] < 2:
            return server
        return f"{server}/{target.get('resource_name') or target.get('name') or ''}".rstrip("/")
