"""Where documents come from: one file for each transport."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List, Mapping, NamedTuple, Optional

from stoker_agent.channel import Channel
from stoker_agent.config import Config
from stoker_agent.queues import SIGNED
from stoker_agent.sources.base import LOCAL, Document, Entries, Source

__all__ = ["LOCAL", "NEEDED", "STOKER", "Document", "Entries", "Making", "Source", "made", "missing"]

#: The agent's own channel, which has no section.
STOKER = "stoker"
_LOGIN = ("auth_url", "user_id", "password", "project_id")
#: Sections of os-collect-config that mean something here, and the keys that each cannot do without.
NEEDED = {
    "cfn": ("metadata_url", "access_key_id", "secret_access_key", "stack_name", "path"),
    "heat": (*_LOGIN, "stack_id", "resource_name"),
    "request": ("metadata_url",),
    "zaqar": (*_LOGIN, "queue_id"),
}
#: In place of a login.
_SIGNED = ("queue_id", *SIGNED)


class Making(NamedTuple):
    """What sources are made from, besides their sections."""

    config: Optional[Config]
    hooks: Path
    #: Seconds between two looks at a source that has nothing new.
    polling: float
    ca_file: Optional[str]


def missing(name: str, section: Mapping[str, Any]) -> List[str]:
    """Keys without which this section is of no use."""
    needed = _SIGNED if name == "zaqar" and section.get("url_signature") else NEEDED[name]
    return [key for key in needed if section.get(key) in (None, "", [])]


def made(name: str, section: Mapping[str, Any], making: Making) -> Source:
    """``section`` has all that is needed. Only what is used is imported: an agent shall be small."""
    if name == STOKER:
        from stoker_agent.sources.stoker import Stoker

        assert making.config is not None, "settings have it only where this agent is enrolled"
        return Stoker(Channel(making.config), making.hooks)
    if name == "cfn":
        from stoker_agent.sources.cfn import Cfn

        return Cfn(section, making.polling, making.ca_file)
    if name == "heat":
        from stoker_agent.sources.heat import Heat

        return Heat(section, making.polling, making.ca_file)
    if name == "request":
        from stoker_agent.sources.request import Request

        return Request(section, making.polling, making.ca_file)
    from stoker_agent.sources.zaqar import Zaqar

    return Zaqar(section, making.polling, making.ca_file)
