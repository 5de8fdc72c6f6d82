"""The way to Stoker itself, with this server's own key."""

from __future__ import annotations

from typing import Dict, Mapping, Optional

from stoker_agent.config import Config
from stoker_agent.web import SECONDS, Answer, Web


class Channel:
    """Not to be shared between threads."""

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
    ) -> Answer:
        """Raises Unreachable; any other answer, errors too, is returned."""
        sent: Dict[str, str] = dict(headers or {})
        if self._key:
            sent["Authorization"] = f"Bearer {self._key}"
        return self._web.call(verb, self._url + path, body, sent, seconds)

    def close(self) -> None:
        self._web.close()
