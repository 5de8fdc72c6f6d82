"""The agent's current sources, created from settings and updated by documents."""

from __future__ import annotations

import logging
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence

from stoker_agent.config import Config, Paths
from stoker_agent.outbox import Outbox
from stoker_agent.settings import Settings, keep, take_over
from stoker_agent.signatures import Verifier
from stoker_agent.transports import Making, Source, create_source

_log = logging.getLogger("stoker-agent")
#: The least time between two reports of refused documents.
_REFUSAL_SECONDS = 60.0


class SourceSet:
    """
    Creates sources, and replaces them when a document changes the settings.

    ``credential`` is the key that verifies published documents. Stoker learns of refused ones through ``outbox``.
    """

    def __init__(
        self, config: Optional[Config], settings: Settings, paths: Paths, credential: Optional[str], outbox: Outbox
    ) -> None:
        self._outbox = outbox
        self._report_at = 0.0
        self._paths = paths
        self._settings = settings
        #: Whether the current settings could not be stored, for example on a full disk.
        self._unkept = False
        self._enrolled = config is not None
        verifier = Verifier(credential, paths.state, self._report_refusal) if credential else None
        self._making = Making(config, paths.hooks, settings.ca_file, verifier)
        self._made: Dict[str, Source] = {name: self._make(settings, name) for name in settings.usable(self._enrolled)}

    @property
    def sources(self) -> List[Source]:
        """The current sources, in order of preference."""
        return [self._made[name] for name in self._settings.usable(self._enrolled)]

    def update(self, collect: Mapping[str, Any]) -> Optional[Sequence[Source]]:
        """Apply and store a document's ``os-collect-config``. Return the new sources, or None without a change."""
        before, now = self._settings, take_over(self._settings, collect, enrolled=self._enrolled)
        if now != before or self._unkept:
            self._keep(now)
        if (now.order, now.sections) == (before.order, before.sections):
            return None
        names = now.usable(self._enrolled)
        _log.info("sources.changed: the document sets the sources %s", ", ".join(names))
        same = {name for name in before.order if before.sections.get(name) == now.sections.get(name)}
        self._made = {
            name: self._made[name] if name in same and name in self._made else self._make(now, name) for name in names
        }
        self._settings = now
        return self.sources

    def _report_refusal(self, source: str, reason: str) -> None:
        """Report a refused document. A forged one fails verification at every poll, so not each refusal is reported."""
        if time.monotonic() >= self._report_at:
            self._report_at = time.monotonic() + _REFUSAL_SECONDS
            body = {"source": source, "reason": reason}
            self._outbox.post("refusal of a document", "POST", "/agent/v1/refusals", body)

    def _keep(self, settings: Settings) -> None:
        try:
            keep(self._paths.sources, settings)
            self._unkept = False
        except OSError as error:
            _log.error("sources.not_stored: cannot store the sources of the document: %s", error)
            self._unkept = True

    def _make(self, settings: Settings, name: str) -> Source:
        return create_source(name, settings.sections.get(name, {}), self._making)
