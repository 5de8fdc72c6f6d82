"""
The agent's sources, their order, and their connection data.

The command line and a configuration file of os-collect-config provide the initial settings. Documents may change them,
so the current settings are stored in ``<root>/etc/sources.json`` (mode 0600, because they contain passwords). A
different command line or file content replaces the stored settings.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from stoker_agent.backoff import LONGEST, SHORTEST
from stoker_agent.config import Unusable, load
from stoker_agent.files import write_json
from stoker_agent.programs import parse_seconds
from stoker_agent.transports import LOCAL, SOURCES, STOKER

_log = logging.getLogger("stoker-agent")

#: A line of a file in the INI format.
_OPTION = re.compile(r"(?P<name>[^=:]*)[=:]\s*(?P<value>.*)")

Sections = Dict[str, Dict[str, Any]]
Value = Union[str, List[str]]


class Settings(NamedTuple):
    """The sources in order of preference, with their sections."""

    #: Includes Stoker's channel even if this server is not enrolled.
    order: Tuple[str, ...]
    sections: Sections
    #: The longest pause in seconds between two polls of a source without changes.
    polling: float = LONGEST
    ca_file: Optional[str] = None
    #: The digest of the command line and file that these settings derive from.
    started_from: str = ""

    def usable(self, enrolled: bool) -> List[str]:
        """Return the names of the usable sources, in order."""
        return [name for name in self.order if enrolled or name != STOKER]


def settings(
    path: Path,
    *,
    enrolled: bool,
    sources: Optional[Sequence[str]] = None,
    os_collect_config: Optional[Path] = None,
    polling: Optional[float] = None,
    ca_file: Optional[str] = None,
) -> Settings:
    """
    Return the stored settings, or new ones if the options of the command line differ from those at the last start.

    ``path`` is the file of stored settings, all arguments after ``enrolled`` are the options. Raises Unusable if the
    options are invalid or no source is usable.
    """
    text = _text(os_collect_config)
    digest = hashlib.sha256(f"{list(sources or ())}\n{text}".encode()).hexdigest()
    saved = load(path, _parse_saved)
    has_no_options = sources is None and os_collect_config is None
    if saved is None or not (has_no_options or saved.started_from == digest):
        saved = _initial_settings(sources, text, digest)
    if not saved.usable(enrolled):
        raise Unusable(_NOTHING if has_no_options and not enrolled else _NO_SOURCE)
    if polling is not None:
        saved = saved._replace(polling=_clamp(polling))
    return saved._replace(ca_file=ca_file or saved.ca_file)


_NOTHING = (
    "there is nothing to get documents from: run `stoker-agent enroll --url URL --token TOKEN` first, "
    "or give --os-collect-config FILE"
)
_NO_SOURCE = "none of the sources can be used: give --os-collect-config FILE with a section for each but stoker's own"


def keep(path: Path, current: Settings) -> None:
    """Store the settings. Raises OSError."""
    write_json(path, current._asdict(), indent=1)


def take_over(current: Settings, collect: Mapping[str, Any], *, enrolled: bool) -> Settings:
    """
    Return the settings with a document's ``os-collect-config`` applied.

    A section that contains only nulls removes its source. New sources precede known ones; Stoker's channel keeps its
    position. A document that would remove all sources changes nothing.
    """
    sections = {name: dict(section) for name, section in current.sections.items()}
    for name in SOURCES:
        raw = collect.get(name)
        if not isinstance(raw, dict) or not raw:
            continue
        own = {key: value for key, value in sections.get(name, {}).items() if key in LOCAL}
        fresh = {key: value for key, value in raw.items() if value is not None}
        if not fresh:
            sections.pop(name, None)
        elif lacking := SOURCES[name].missing(fresh):
            _log.warning(
                "source.incomplete: the document's section %s lacks %s and is not used", name, ", ".join(lacking)
            )
        else:
            sections[name] = {**own, **fresh}
    named = _texts(collect)
    new = [name for name in named if name in sections and name not in current.order]
    new += [name for name in sections if name not in (*named, *current.order)]
    staying = [name for name in current.order if name == STOKER or name in sections]
    first = [name for name in staying[:1] if name == STOKER]
    changed = current._replace(order=tuple(dict.fromkeys((*first, *new, *staying))), sections=sections)
    if not changed.usable(enrolled):
        _log.warning("sources.kept: the document removes all present sources, which remain in use")
        return current
    return changed


def _initial_settings(sources: Optional[Sequence[str]], text: str, digest: str) -> Settings:
    """Return the settings that the command line and the file describe. Raises Unusable."""
    file = _read(text)
    default: Mapping[str, Any] = file.get("DEFAULT", {})
    sections: Sections = {}
    for name in SOURCES:
        if file.get(name) and not SOURCES[name].missing(file[name]):
            sections[name] = {key: value for key, value in file[name].items() if value is not None}
    unknown = [name for name in sources or () if name not in (STOKER, *SOURCES)]
    if unknown:
        raise Unusable(f"no such source: {', '.join(unknown)}; there are {', '.join((STOKER, *SOURCES))}")
    collectors = parse_list(default.get("collectors", [])) or list(sections)
    wanted = [STOKER, *collectors] if sources is None else list(sources)
    order = tuple(dict.fromkeys(name for name in wanted if name == STOKER or name in sections))
    for name in wanted:
        if name in SOURCES and name not in sections:
            lacking = ", ".join(SOURCES[name].missing(file.get(name, {})))
            _log.warning(
                "source.incomplete: the source %s is not used until a document completes it: it lacks %s", name, lacking
            )
    polling = _clamp(parse_seconds(default.get("polling_interval"), LONGEST))
    return Settings(order, {name: sections[name] for name in order if name in sections}, polling, None, digest)


def read_ini(text: str) -> Dict[str, Dict[str, Value]]:
    """
    Return the options of a file in the INI format of oslo.config by section, including ``DEFAULT``.

    ``-`` in an option's name becomes ``_``. A repeated option has a list of its values. Invalid lines are ignored, so
    that an error in the file does not prevent the agent's start.
    """
    sections: Dict[str, Dict[str, List[str]]] = {"DEFAULT": {}}
    section, key = sections["DEFAULT"], ""
    for line in text.splitlines():
        plain = line.strip()
        option = _OPTION.fullmatch(plain)
        if not plain or plain[0] in "#;":
            continue
        if plain.startswith("[") and plain.endswith("]"):
            section, key = sections.setdefault(plain[1:-1].strip(), {}), ""
        elif line[0].isspace() and key:
            section.setdefault(key, []).append(plain)
        elif option:
            key = option["name"].strip().replace("-", "_").lower()
            if option["value"]:
                section.setdefault(key, []).append(option["value"])
    return {
        name: {key: values[0] if len(values) == 1 else values for key, values in options.items()}
        for name, options in sections.items()
    }


def parse_list(value: Value) -> List[str]:
    """Split a list value: one item per line, or items separated by commas."""
    lines = value if isinstance(value, list) else [value]
    return [word.strip() for line in lines for word in line.split(",") if word.strip()]


def _read(text: str) -> Mapping[str, Mapping[str, Any]]:
    """Parse the file: INI, or JSON in the format of server metadata. Raises Unusable."""
    if not text.lstrip().startswith("{"):
        return read_ini(text)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"the file of --os-collect-config cannot be read: {error}") from None
    nested = data.get("os-collect-config", data)
    collect: Mapping[str, Any] = nested if isinstance(nested, dict) else {}
    values = {name: section for name, section in collect.items() if isinstance(section, dict)}
    return {**values, "DEFAULT": {"collectors": [*_texts(collect), *values]}}


def _texts(collect: Mapping[str, Any]) -> List[str]:
    named = collect.get("collectors")
    return [word for word in named if isinstance(word, str)] if isinstance(named, list) else []


def _parse_saved(data: Dict[str, Any]) -> Settings:
    return Settings(
        order=tuple(name for name in data["order"] if name == STOKER or name in data["sections"]),
        sections={name: dict(section) for name, section in data["sections"].items() if name in SOURCES},
        polling=_clamp(parse_seconds(data.get("polling"), LONGEST)),
        ca_file=data.get("ca_file"),
        started_from=str(data.get("started_from")),
    )


def _text(path: Optional[Path]) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Unusable(f"cannot read {path}: {error.strerror}") from None


def _clamp(seconds: float) -> float:
    return min(LONGEST, max(SHORTEST, seconds)) if math.isfinite(seconds) else LONGEST
