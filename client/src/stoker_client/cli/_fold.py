"""Folded output: the equal output of many servers, printed once, as `clush -b` does."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from stoker_client.cli._output import echo
from stoker_client.shapes import OutputGroup
from stoker_client.terminal import split_lines

_RULE = "-" * 15
#: The last number of a name before its first dot, because a domain is the same for many servers.
_NUMBERED = re.compile(r"([^.]*?)(\d+)([^\d.]*(?:\..*)?)", re.DOTALL)


def fold_names(names: Iterable[str]) -> str:
    """Return names with ranges in place of their numbers: ``web[1-12,20],db``."""
    folded: dict[tuple[str, ...], set[str]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name)
        before, number, *after = match.groups() if match else (name, "")
        folded.setdefault((before, *after), set()).add(number)
    return ",".join(
        before + "".join([_fold_numbers(numbers), *after]) if after else before
        for (before, *after), numbers in folded.items()
    )


def _fold_numbers(numbers: Iterable[str]) -> str:
    """Return one number, or ranges in brackets. Leading zeros stay."""
    ranges: list[list[str]] = []
    for number in sorted(numbers, key=lambda number: (int(number), len(number))):
        if ranges and _follows(number, ranges[-1][-1]):
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    text = ",".join(map("-".join, ranges))
    return text if text.isdecimal() else f"[{text}]"


def _follows(number: str, before: str) -> bool:
    has_zeros = before.startswith("0") or number.startswith("0")
    return int(number) == int(before) + 1 and (len(number) == len(before) or not has_zeros)


def print_groups(groups: Sequence[OutputGroup], total: int, *, shows_diff: bool) -> None:
    """
    Print groups of output. ``total`` is the number of all groups.

    With ``shows_diff``, of the groups after the first, the largest one, only the lines are printed that differ from it.
    """
    for group in groups:
        if shows_diff and group is not groups[0]:
            _print_diff(groups[0], group)
        else:
            echo(f"{_RULE}\n{_title(group)}\n{_RULE}")
            for line in _lines(group):
                echo(line)
    if total > len(groups):
        echo(f"{_RULE}\n{total - len(groups)} smaller groups are not shown")


def _print_diff(first: OutputGroup, group: OutputGroup) -> None:
    lines = list(
        difflib.unified_diff(list(_lines(first)), list(_lines(group)), _title(first), _title(group), lineterm="")
    )
    for line in lines or (f"--- {_title(first)}", f"+++ {_title(group)}", " the same output"):
        echo(line)


def _title(group: OutputGroup) -> str:
    code = group["exit_code"]
    result = f", exit code {code}" if code not in ("0", None) else ""
    return f"{fold_names(group['servers'])} ({group['count']}){result}"


def _lines(group: OutputGroup) -> Iterator[str]:
    for stream in (group["stdout"], group["stderr"]):
        if stream:
            yield from split_lines(stream.removesuffix("\n"))
    if group["digest"] is None:
        yield f"no result: {group['status_reason']}"
    if group["is_cut"]:
        yield f"[… more: `stoker deployment logs {group['deployment_id']}`]"
