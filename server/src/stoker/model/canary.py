"""Canaries: the servers on which a rollout begins, and whose success lets it continue."""

from __future__ import annotations

import math
import re

from stoker.model.errors import Invalid

#: A number of servers, or a percentage of them such as ``10%``.
Canary = int | str
_PERCENTAGE = re.compile(r"(100|[1-9][0-9]?)%", re.ASCII)


def check(canary: Canary | None) -> None:
    """Raise Invalid for a number or a text that a client cannot mean as a canary."""
    is_number = isinstance(canary, int) and not isinstance(canary, bool) and 0 < canary < 2**31
    if canary is None or is_number or (isinstance(canary, str) and _PERCENTAGE.fullmatch(canary)):
        return
    raise Invalid(f"canary must be a number of servers from 1 on, or a percentage such as 10%, not {canary!r:.100}")


def count(canary: Canary | None, total: int) -> int:
    """Return the number of canaries among ``total`` servers; 0 if all servers are canaries, or none."""
    number = canary or 0
    if isinstance(number, str):
        number = math.ceil(total * int(number.removesuffix("%")) / 100)
    return number if number < total else 0
