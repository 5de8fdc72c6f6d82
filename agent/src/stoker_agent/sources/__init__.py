"""Sources of documents: one module per metadata transport."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List, Mapping, NamedTuple, Optional

from stoker_agent.channel import Channel
from stoker_agent.config import Config
from stoker_agent.signatures import Verifier
from stoker_agent.sources.base import LOCAL, Document, Entries, Source

__all__ = ["LOCAL", "NEEDED", "SIGNED", "STOKER", "Document", "Entries", "Making", "Source", "create_source", "missing"]

#: The name of Stoker's channel, which has no section.
STOKER = "stoker"
_LOGIN = ("auth_url", "user_id", "password", "project_id")
#: The supported sections of os-collect-config, with their required keys.
NEEDED = {
    "cfn": ("metadata_url", "access_key_id", "secret_access_key", "stack_name", "path"),
    "heat": (*_LOGIN, "stack_id", "resource_name"),
    "request": ("metadata_url",),
    "zaqar": (*_LOGIN, "queue_id"),
}
#: The keys of a pre-signed URL in a section, or in inputs with the prefix ``deploy_``.
SIGNED = ("messaging_url", "project_id", "url_paths", "url_methods", "url_expires", "url_signature")
#: Required keys of a section with a pre-signed URL instead of a login.
_SIGNED = ("queue_id", *SIGNED)


class Making(NamedTuple):
    """The common arguments of sources, besides their sections."""

    config: Optional[Config]
    hooks: Path
    #: The longest pause in seconds between two polls without changes.
    polling: float
    ca_file: Optional[str]
    #: Verifies published documents; with None, the agent has no key and accepts them unverified.
    verifier: Optional[Verifier] = None


def missing(name: str, section: Mapping[str, Any]) -> List[str]:
    """Return the required keys that the section lacks."""
    needed = _SIGNED if name == "zaqar" and section.get("url_signature") else NEEDED[name]
    return [key for key in needed if section.get(key) in (None, "", [])]


def create_source(name: str, section: Mapping[str, Any], making: Making) -> Source:
    """
    Create the source ``name`` from a complete section. Only the modules of used sources are imported, to save memory.
    """
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

        return Request(section, making.polling, making.ca_file, making.verifier)
    from stoker_agent.sources.zaqar import Zaqar

    return Zaqar(section, making.polling, making.ca_file, making.verifier)
