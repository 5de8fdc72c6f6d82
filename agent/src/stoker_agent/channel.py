"""The HTTP channel to Stoker, authenticated with this server's key."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Optional

from stoker_agent.config import Config
from stoker_agent.web import ANSWER, JSON, SECONDS, Answer, Limit, Refused, Web


class Channel:
    """Calls Stoker's agent API. Not safe for use by several threads."""

    def __init__(self, config: Config) -> None:
        self._web = Web(config.ca_file)
        self._url = config.url.rstrip("/")
        self._key = config.key

    def call(
        self,
        verb: str,
        path: str,
        body: Optional[bytes] = None,
        headers: Optional[Mapping[str, str]] = None,
        seconds: float = SECONDS,
        limit: Limit = ANSWER,
    ) -> Answer:
        """
        Send a request to ``path`` below Stoker's URL and return the answer, whatever its status below 500.

        ``seconds`` limits the wait for the answer. Raises Unreachable without an answer, Busy for 408, 429 and 5xx, and
        Refused for an answer above the limit.
        """
        sent: Dict[str, str] = dict(headers or {})
        if self._key:
            sent["Authorization"] = f"Bearer {self._key}"
        return self._web.call(verb, self._url + path, body, sent, seconds, limit)

    def report(self, verb: str, path: str, body: Mapping[str, Any]) -> Optional[str]:
        """
        Send JSON to ``path``. Return None if Stoker accepts it, or has no use for it, else why Stoker refuses it.

        Raises Unreachable if it must be sent again, and Refused if Stoker rejects this agent's key.
        """
        answer = self.call(verb, path, json.dumps(body).encode(), JSON)
        if answer.status in (401, 403):
            raise Refused("the server refuses this agent's key")
        return answer.refusal

    def close(self) -> None:
        """Close the connection. A later call opens it again."""
        self._web.close()


def call_once(
    config: Config, verb: str, path: str, body: Optional[Mapping[str, Any]] = None, seconds: float = SECONDS
) -> Answer:
    """Send one request, with the JSON ``body``, on a connection of its own. See ``Channel.call``."""
    channel = Channel(config)
    try:
        return channel.call(verb, path, None if body is None else json.dumps(body).encode(), JSON, seconds)
    finally:
        channel.close()
