"""Senders of results: one module per signal transport, selected by the config's inputs as in heat-config-notify."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Mapping, Optional

from stoker_agent.channel import Channel
from stoker_agent.config import Config
from stoker_agent.programs import inputs
from stoker_agent.senders.base import NoSender, Sender
from stoker_agent.senders.stoker import StokerSignal
from stoker_agent.sources import STOKER
from stoker_agent.web import Web

if TYPE_CHECKING:
    from stoker_agent.keystone import Login, Session

__all__ = ["Nobody", "Sender", "Senders"]

_SESSIONS = 16
_NOT_ENROLLED = "it is for Stoker's own channel, and this agent is not enrolled"


class Senders:
    """Selects the sender of a result. Reuses connections and tokens. Not safe for use by several threads."""

    def __init__(self, config: Optional[Config], ca_file: Optional[str] = None) -> None:
        self._channel = None if config is None else Channel(config)
        self._web = Web(ca_file)
        self._sessions: OrderedDict[Login, Session] = OrderedDict()

    def of(self, entry: Mapping[str, Any], source: str) -> Optional[Sender]:
        """
        Return the sender for a run, or None if no result is expected.

        ``entry`` is the document's entry, ``source`` the name of the source that listed it. ``NoSender`` is returned
        where the agent has no means to send the result.
        """
        values = inputs(entry)
        transport = values.get("deploy_signal_transport")
        own = source == STOKER or transport == "STOKER_SIGNAL"
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
        """
        Return the sender that the inputs describe, or None if they describe none.

        Only the modules of used transports are imported, to save memory.
        """
        url = values.get("deploy_signal_id")
        if isinstance(url, str) and url:
            from stoker_agent.senders.url import UrlSignal

            return UrlSignal(self._web, url, str(values.get("deploy_signal_verb") or "POST"))
        signed = bool(values.get("deploy_url_signature"))
        if not signed and not values.get("deploy_auth_url"):
            return None
        from stoker_agent.keystone import Login
        from stoker_agent.queues import QueueOfLogin, SignedQueue
        from stoker_agent.senders.heat import HeatSignal
        from stoker_agent.senders.queue import QueueSignal

        try:
            if signed:
                return QueueSignal(SignedQueue(self._web, values, "deploy_"))
            session = self._session(Login.of(values, "deploy_"))
            if values.get("deploy_queue_id"):
                return QueueSignal(QueueOfLogin(session, str(values["deploy_queue_id"])))
            return HeatSignal(session, str(values["deploy_stack_id"]), str(values["deploy_resource_name"]))
        except KeyError as error:
            return NoSender(f"its input {error} is missing")

    def _session(self, login: Login) -> Session:
        from stoker_agent.keystone import Session

        session = self._sessions.pop(login, None) or Session(self._web, login)
        self._sessions[login] = session
        if len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)
        return session
