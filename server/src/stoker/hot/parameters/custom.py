"""The custom constraints that depend on the value alone."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import datetime

from stoker.hot.text import read_json

_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)", re.ASCII)
_MAC = re.compile(r"[0-9a-f]{2}([:-])[0-9a-f]{2}(\1[0-9a-f]{2}){4}", re.ASCII | re.IGNORECASE)
_CRON_PART = re.compile(r"(\*|[0-9]+(-[0-9]+)?)(/[1-9][0-9]*)?", re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
#: Minimum, maximum and names of each field: minute, hour, day, month, day of the week.
_CRON_FIELDS: tuple[tuple[int, int, tuple[str, ...]], ...] = (
    (0, 59, ()),
    (0, 23, ()),
    (1, 31, ()),
    (1, 12, _MONTHS),
    (0, 7, _DAYS),
)


def _accepts(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
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


def _cron(text: str) -> bool:
    """The five standard fields: numbers, names, ranges, lists and steps."""
    fields = text.lower().split()
    if len(fields) != len(_CRON_FIELDS):
        return False
    return all(_cron_field(field, *limits) for field, limits in zip(fields, _CRON_FIELDS, strict=True))


def _cron_field(field: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    for number, name in enumerate(names, start=low):
        field = field.replace(name, str(number))
    return all(_cron_part(part, low, high) for part in field.split(","))


def _cron_part(part: str, low: int, high: int) -> bool:
    if len(part) > 20 or not _CRON_PART.fullmatch(part):
        return False
    ends = [int(end) for end in part.partition("/")[0].split("-") if end != "*"]
    return ends == sorted(ends) and all(low <= end <= high for end in ends)


CHECKS: dict[str, Callable[[str], bool]] = {
    "ip_addr": _accepts(ipaddress.ip_address),
    "net_cidr": _accepts(_network),
    "mac_addr": lambda text: _MAC.fullmatch(text) is not None,
    "dns_name": _dns_name,
    "iso_8601": _accepts(datetime.fromisoformat),
    "json_string": _accepts(read_json),
    "cron_expression": _cron,
}
