"""Where documents come from: one file for each transport."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List, Mapping, NamedTuple, Optional

from stoker_agent.channel import Channel
from stoker_agent.config import Config
from stoker_agent.sources import cfn, heat, request, zaqar
from stoker_agent.sources.base import LOCAL, Document, Entries, Source
from stoker_agent.sources.stoker import Stoker

__all__ = ["LOCAL", "NEEDED", "STOKER", "Document", "Entries", "Making", "Source", "made", "missing"]

STOKER = Stoker.name
#: Sections of os-collect-config that mean something here, and the keys that each cannot do without.
NEEDED = {"cfn": cfn.NEEDED, "heat": heat.NEEDED, "request": request.NEEDED, "zaqar": zaqar.NEEDED}


class Making(NamedTuple):
    """What sources are made from, besides their sections."""

    config: Optional[Config]
    hooks: Path
    state: Path
    #: Seconds between two looks at a source that has nothing new.
    polling: float
    ca_file: Optional[str]


def missing(name: str, section: Mapping[str, Any]) -> List[str]:
    """Keys without which this section is of no use."""
    return [key for key in NEEDED[name] if section.get(key) in (None, "", [])]


def made(name: str, section: Mapping[str, Any], making: Making) -> Source:
    """``section`` has all that is needed."""
    if name == STOKER:
        assert making.config is not None, "settings have it only where this agent is enrolled"
        return Stoker(Channel(making.config), making.hooks)
    if name == "cfn":
        return cfn.Cfn(section, making.polling, making.ca_file)
    if name == "heat":
        return heat.Heat(section, making.polling, making.ca_file)
    if name == "request":
        return request.Request(section, making.polling, making.ca_file)
    return zaqar.Zaqar(section, making.polling, making.ca_file, making.state)
