"""
Which sources this agent has, in which order, and what it needs to know of each.

It starts from the command line and from a configuration file of os-collect-config's. From then on documents may say
something else, so what holds is kept in ``<root>/etc/sources.json`` (mode 0600: there are passwords in it). Another
command line, or another content of that file, starts anew.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from stoker_agent.config import Unusable
from stoker_agent.files import write
from stoker_agent.ini import listed, read_ini
from stoker_agent.pauses import LONGEST, SHORTEST
from stoker_agent.sources import LOCAL, NEEDED, STOKER, missing

_log = logging.getLogger("stoker-agent")

Sections = Dict[str, Dict[str, Any]]


class Settings(NamedTuple):
    #: Stoker's own channel is among them also where this agent is not enrolled yet.
    order: Tuple[str, ...]
    sections: Sections
    #: Seconds between two looks at a source that has nothing new.
    polling: float = LONGEST
    ca_file: Optional[str] = None
    #: Of the words and the file that this came from.
    started_from: str = ""

    def usable(self, enrolled: bool) -> List[str]:
        """Names of sources, in order."""
        return [name for name in self.order if enrolled or name != STOKER]


class Said(NamedTuple):
    """On the command line."""

    sources: Optional[Sequence[str]] = None
    os_collect_config: Optional[Path] = None
    polling: Optional[float] = None
    ca_file: Optional[str] = None


def settings(path: Path, said: Said, *, enrolled: bool) -> Settings:
    """What was kept, unless there is something else to start from. Raises Unusable."""
    text = _text(said.os_collect_config)
    digest = hashlib.sha256(f"{list(said.sources or ())}\n{text}".encode()).hexdigest()
    found = _kept(path)
    nothing_said = said.sources is None and said.os_collect_config is None
    if found is None or not (nothing_said or found.started_from == digest):
        found = _started(said, text, digest)
    if not found.usable(enrolled):
        raise Unusable(_no_source(said, enrolled))
    if said.polling is not None:
        found = found._replace(polling=_bounded(said.polling))
    return found._replace(ca_file=said.ca_file or found.ca_file)


def keep(path: Path, found: Settings) -> None:
    """Raises OSError."""
    write(path, json.dumps(found._asdict(), indent=1, sort_keys=True).encode())


def taken_over(known: Settings, collect: Mapping[str, Any], *, enrolled: bool) -> Settings:
    """
    With what a document says of ``os-collect-config``: sections with nothing but nulls in them are forgotten, new ones
    come before those that were known, Stoker's own channel stays where it is. At least one source is left.
    """
    sections = {name: dict(section) for name, section in known.sections.items()}
    for name in NEEDED:
        said = collect.get(name)
        if not isinstance(said, dict) or not said:
            continue
        own = {key: value for key, value in sections.get(name, {}).items() if key in LOCAL}
        fresh = {key: value for key, value in said.items() if value is not None}
        if not fresh:
            sections.pop(name, None)
        elif lacking := missing(name, fresh):
            _log.warning("the document's section %s is of no use without %s", name, ", ".join(lacking))
        else:
            sections[name] = {**own, **fresh}
    told = collect.get("collectors")
    named = [name for name in (told if isinstance(told, list) else ()) if isinstance(name, str)]
    new = [name for name in named if name in sections and name not in known.order]
    new += [name for name in sections if name not in (*named, *known.order)]
    staying = [name for name in known.order if name == STOKER or name in sections]
    first = [name for name in staying[:1] if name == STOKER]
    found = known._replace(order=tuple(dict.fromkeys((*first, *new, *staying))), sections=sections)
    if not found.usable(enrolled):
        _log.warning("the document takes away all sources that there are: they are kept")
        return known
    return found


def _started(said: Said, text: str, digest: str) -> Settings:
    """From the command line and the file. Raises Unusable."""
    file = _read(text)
    default: Mapping[str, Any] = file.get("DEFAULT", {})
    sections: Sections = {}
    for name in NEEDED:
        if file.get(name) and not missing(name, file[name]):
            sections[name] = {key: value for key, value in file[name].items() if value is not None}
    unknown = [name for name in said.sources or () if name not in (STOKER, *NEEDED)]
    if unknown:
        raise Unusable(f"no such source: {', '.join(unknown)}; there are {', '.join((STOKER, *NEEDED))}")
    collectors = listed(default.get("collectors", [])) or list(sections)
    wanted = [STOKER, *collectors] if said.sources is None else list(said.sources)
    order = tuple(dict.fromkeys(name for name in wanted if name == STOKER or name in sections))
    for name in wanted:
        if name in NEEDED and name not in sections:
            lacking = ", ".join(missing(name, file.get(name, {})))
            _log.warning("the source %s is left out until a document tells of it: without %s", name, lacking)
    polling = _bounded(_number(default.get("polling_interval"), LONGEST))
    return Settings(order, {name: sections[name] for name in order if name in sections}, polling, None, digest)


def _read(text: str) -> Mapping[str, Mapping[str, Any]]:
    """INI; or JSON, as a server's metadata has it. Raises Unusable."""
    if not text.lstrip().startswith("{"):
        return read_ini(text)
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"the file of --os-collect-config cannot be read: {error}") from None
    collect = said.get("os-collect-config", said)
    found = (
        {name: each for name, each in collect.items() if isinstance(each, dict)} if isinstance(collect, dict) else {}
    )
    return {**found, "DEFAULT": {"collectors": [*_texts(collect), *found]}}


def _texts(collect: Any) -> List[str]:
    named = collect.get("collectors") if isinstance(collect, dict) else None
    return [each for each in named if isinstance(each, str)] if isinstance(named, list) else []


def _kept(path: Path) -> Optional[Settings]:
    try:
        said = json.loads(path.read_text())
        return Settings(
            order=tuple(name for name in said["order"] if name == STOKER or name in said["sections"]),
            sections={name: dict(section) for name, section in said["sections"].items() if name in NEEDED},
            polling=_bounded(_number(said.get("polling"), LONGEST)),
            ca_file=said.get("ca_file"),
            started_from=str(said.get("started_from")),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unusable(f"cannot read {path}: {type(error).__name__}: {error}") from None


def _text(path: Optional[Path]) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Unusable(f"cannot read {path}: {error.strerror}") from None


def _no_source(said: Said, enrolled: bool) -> str:
    if said.sources is None and said.os_collect_config is None and not enrolled:
        return (
            "there is nothing to get documents from: run `stoker-agent enroll --url URL --token TOKEN` first, "
            "or give --os-collect-config FILE"
        )
    return "none of the sources can be used: give --os-collect-config FILE with a section for each but stoker's own"


def _number(said: Any, default: float) -> float:
    try:
        return float(said)
    except (TypeError, ValueError):
        return default


def _bounded(seconds: float) -> float:
    return min(LONGEST, max(SHORTEST, seconds)) if math.isfinite(seconds) else LONGEST
