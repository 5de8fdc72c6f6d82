"""Transports: one module each, with its source of documents and its sender of results."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Mapping, Optional, Type

from stoker_agent.keystone import Login, Session
from stoker_agent.programs import inputs
from stoker_agent.runs import source_of
from stoker_agent.transports.base import LOCAL, STOKER, Document, Making, NoSender, Sender, Source
from stoker_agent.transports.cfn import Cfn
from stoker_agent.transports.heat import Heat, HeatSignal
from stoker_agent.transports.stoker import Stoker, StokerSignal
from stoker_agent.transports.url import Request, UrlSignal
from stoker_agent.transports.zaqar import QueueOfLogin, QueueSignal, SignedQueue, Zaqar
from stoker_agent.web import Channel, Web

__all__ = ["LOCAL", "SOURCES", "STOKER", "Document", "Making", "Sender", "Senders", "Source", "create_source"]

#: The sources with a section in os-collect-config, by name.
SOURCES: Mapping[str, Type[Source]] = {source.name: source for source in (Cfn, Heat, Request, Zaqar)}


def create_source(name: str, section: Mapping[str, Any], making: Making) -> Source:
    """Create the source ``name`` from a complete section."""
    if name == STOKER:
        return Stoker(making)
    return SOURCES[name](section, making)


_SESSIONS = 16
_NOT_ENROLLED = "it is for Stoker's own channel, and this agent is not enrolled"


class Senders:
    """
    Selects the sender of a result. Reuses connections and tokens.

    ``channel`` leads to Stoker, if this server is enrolled. Several threads may select, but only one may send.
    """

    def __init__(self, channel: Optional[Channel], ca_file: Optional[str] = None) -> None:
        self._channel = channel
        self._web = Web(ca_file)
        self._session = lru_cache(maxsize=_SESSIONS)(lambda login: Session(self._web, login))

    def of(self, entry: Mapping[str, Any]) -> Optional[Sender]:
        """
        Return the sender for the run of an entry, or None if no result is expected.

        ``NoSender`` is returned where the agent has no means to send the result.
        """
        values = inputs(entry)
        transport = values.get("deploy_signal_transport")
        own = source_of(entry) == STOKER or transport == "STOKER_SIGNAL"
        if transport == "NO_SIGNAL":
            return None
        if own and self._channel is not None:
            return StokerSignal(self._channel)
        return self._create(values) or (NoSender(_NOT_ENROLLED) if own else None)

    def close(self) -> None:
        """Close all connections."""
        if self._channel is not None:
            self._channel.close()
        self._web.close()

    def _create(self, values: Mapping[str, Any]) -> Optional[Sender]:
        """Return the sender that the inputs describe, or None if they describe none."""
        url = values.get("deploy_signal_id")
        if isinstance(url, str) and url:
            return UrlSignal(self._web, url, str(values.get("deploy_signal_verb") or "POST"))
        signed = bool(values.get("deploy_url_signature"))
        if not signed and not values.get("deploy_auth_url"):
            return None
        try:
            if signed:
                return QueueSignal(SignedQueue(self._web, values, "deploy_"))
            session = self._session(Login.of(values, "deploy_"))
            if values.get("deploy_queue_id"):
                return QueueSignal(QueueOfLogin(session, str(values["deploy_queue_id"])))
            return HeatSignal(session, str(values["deploy_stack_id"]), str(values["deploy_resource_name"]))
        except KeyError as error:
            return NoSender(f"its input {error} is missing")
