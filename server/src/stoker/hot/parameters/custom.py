"""The custom constraints that depend on the value alone."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import datetime

from croniter import croniter

from stoker.hot.text import read_json

_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)", re.ASCII)
_MAC = re.compile(r"[0-9a-f]{2}([:-])[0-9a-f]{2}(\1[0-9a-f]{2}){4}", re.ASCII | re.IGNORECASE)
#: Characters of a cron expression: croniter takes a second for some hundred thousand.
_LONGEST_CRON = 255


def _accepts(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, OverflowError):
            return False
        return True

    return check


def _network(text: str) -> object:
    address, slash, size = text.partition("/")
    if not slash or not size.isascii() or not size.isdigit():
        raise ValueError(text)
    return ipaddress.ip_network(f"{address}/{size}", strict=False)


def _dns_name(text: str) -> bool:
    """An absolute or relative domain name; the last label of an absolute one is not a number."""
    labels = text.removesuffix(".").split(".")
    fits = len(text) <= 255 and all(_LABEL.fullmatch(label) for label in labels)
    return fits and not (len(labels) > 1 and labels[-1].isdigit())


def _cron(text: str) -> None:
    """Read an expression as Heat does, which accepts an empty text."""
    if len(text) > _LONGEST_CRON:
        raise ValueError(text)
    if text:
        croniter(text)


CHECKS: dict[str, Callable[[str], bool]] = {
    "ip_addr": _accepts(ipaddress.ip_address),
    "net_cidr": _accepts(_network),
    "mac_addr": lambda text: _MAC.fullmatch(text) is not None,
    "dns_name": _dns_name,
    "iso_8601": _accepts(datetime.fromisoformat),
    "json_string": _accepts(read_json),
    "cron_expression": _accepts(_cron),
}
