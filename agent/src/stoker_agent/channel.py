"""The HTTP channel to Stoker, authenticated with this server's key."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional

from stoker_agent.config import Config
from stoker_agent.web import JSON, SECONDS, Answer, Refused, Web


class Channel(Web):
    """Calls Stoker's agent API, by paths below its URL. Not safe for use by several threads."""

    def __init__(self, config: Config) -> None:
        key = {"Authorization": f"Bearer {config.key}"} if config.key else {}
        super().__init__(config.ca_file, config.url.rstrip("/"), key)

    def report(self, verb: str, path: str, body: Mapping[str, Any]) -> Optional[str]:
        """
        Send JSON to ``path``. Return None if Stoker accepts it, or has no use for it, else why Stoker refuses it.

        Raises Unreachable if it must be sent again, and Refused if Stoker rejects this agent's key.
        """
        answer = self.call(verb, path, json.dumps(body).encode(), JSON)
        if answer.status in (401, 403):
            raise Refused("the server refuses this agent's key")
        return answer.refusal


def call_once(
    config: Config, verb: str, path: str, body: Optional[Mapping[str, Any]] = None, seconds: float = SECONDS
) -> Answer:
    """Send one request, with the JSON ``body``, on a connection of its own. See ``Web.call``."""
    channel = Channel(config)
    try:
        return channel.call(verb, path, None if body is None else json.dumps(body).encode(), JSON, seconds)
    finally:
        channel.close()
