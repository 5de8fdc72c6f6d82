"""
Servers' documents: what is to run where, as bytes.

Every derived config is rendered once, when it is written; a document is the join of those texts, made at the
first request after a change and kept until the next. Rendering whole documents at write time instead would
make n deployments on one server cost n² (measured: see ARCHITECTURE.md). Two forms: Heat's lists every
deployment of the server; the agent's holds what it has yet to run or report, so it stays small.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from stoker.deployments.delivering import Delivering, News
from stoker.store import deployments, documents, runs, servers
from stoker.store.open import Store

#: How long an agent may hold a poll open, in seconds; it is told in each document.
POLL_WAIT = 50
#: Bytes kept of one stream of one run, where no setting says otherwise; agents send no more.
LOG_BYTES = 8 * 1024 * 1024
_AGENT = "agent"
_RESOURCES = 100_000
#: In an entry of the agent's document: it is to be stopped, or never begun, and that is to be reported.
_CANCEL = ',"cancel":true'


@dataclass(slots=True)
class Document:
    revision: int
    body: bytes
    #: Runs in it that nobody was told of; those of this very document are told once.
    news: News = ()


class Documents:
    """A cache over the store. Reading it never blocks; loading reads the database."""

    def __init__(self, store: Store, max_bytes: int = 32 * 1024 * 1024, log_bytes: int = LOG_BYTES) -> None:
        self._store = store
        self._delivering = Delivering(store)
        self._log_bytes = log_bytes
        self._max_bytes = max_bytes
        self._bytes = 0
        self._lock = threading.Lock()
        #: server id → form → document, least recently used first.
        self._kept: OrderedDict[str, dict[str, Document]] = OrderedDict()
        #: Newest revision heard of: a slower reader must not put an older document back.
        self._heard: OrderedDict[str, int] = OrderedDict()
        #: Resource id → id of the server that it is; that never changes.
        self._servers: dict[str, str] = {}
        store.bell.listen(self._on_ring)

    def agent(self, server_id: str) -> Document | None:
        return self._find(server_id, _AGENT)

    def load_agent(self, server_id: str) -> Document:
        with self._store.read() as tx:
            revision = documents.revision(tx, server_id)
            entries = deployments.to_run(tx, server_id)
            news = runs.undelivered(tx, server_id) if entries else ()
            concurrency = servers.concurrency(tx, server_id) if len(entries) > 1 else 1
        listed = ",".join(
            f'{body[:-1]},"deployment_id":"{id}"{_CANCEL if cancelling else ""}}}' for id, body, cancelling in entries
        )
        head = (
            f'{{"server_id":"{server_id}","revision":{revision},"poll_wait":{POLL_WAIT},'
            f'"concurrency":{concurrency},"max_log_bytes":{self._log_bytes},"deployments":['
        )
        return self._keep(server_id, _AGENT, Document(revision, f"{head}{listed}]}}".encode(), news))

    def heat(self, server_id: str, project_id: str) -> Document | None:
        return self._find(server_id, project_id)

    def load_heat(self, server_id: str, project_id: str) -> Document:
        with self._store.read() as tx:
            revision = documents.revision(tx, server_id)
            bodies = deployments.bodies(tx, server_id, project_id)
            news = runs.undelivered(tx, server_id, project_id) if bodies else ()
        body = f'{{"metadata":[{",".join(bodies)}]}}'.encode()
        return self._keep(server_id, project_id, Document(revision, body, news))

    def known(self, resource_id: str, form: str) -> Document | None:
        """What was last remembered of a server by the resource that it is, as long as it holds."""
        server_id = self._servers.get(resource_id)
        return None if server_id is None else self._find(server_id, f"{resource_id}/{form}")

    def remember(self, resource_id: str, server_id: str, form: str, document: Document) -> Document:
        """``document.revision`` was read in the transaction that its body was made of."""
        if len(self._servers) >= _RESOURCES:
            self._servers.clear()
        self._servers[resource_id] = server_id
        return self._keep(server_id, f"{resource_id}/{form}", document)

    def went_out(self, document: Document, channel: str) -> None:
        """An agent is being answered with it: what is new in it will be marked as delivered. Without I/O."""
        if document.news:
            news, document.news = document.news, ()
            self._delivering.delivered(news, channel)

    def _find(self, server_id: str, form: str) -> Document | None:
        with self._lock:
            forms = self._kept.get(server_id)
            if forms is None:
                return None
            self._kept.move_to_end(server_id)
            return forms.get(form)

    def _keep(self, server_id: str, form: str, document: Document) -> Document:
        with self._lock:
            if document.revision >= self._heard.get(server_id, 0):
                forms = self._kept.setdefault(server_id, {})
                self._kept.move_to_end(server_id)
                replaced = forms.get(form)
                forms[form] = document
                self._bytes += len(document.body) - (len(replaced.body) if replaced else 0)
                while self._bytes > self._max_bytes and self._kept:
                    self._drop(next(iter(self._kept)))
        return document

    def _drop(self, server_id: str) -> None:
        self._bytes -= sum(len(document.body) for document in self._kept.pop(server_id, {}).values())

    def _on_ring(self, topic: str, revision: int) -> None:
        with self._lock:
            if topic == "*":
                self._kept.clear()
                self._bytes = 0
            elif topic.startswith("s/"):
                server_id = topic[2:]
                self._drop(server_id)
                self._heard[server_id] = max(revision, self._heard.get(server_id, 0))
                self._heard.move_to_end(server_id)
                if len(self._heard) > 100_000:
                    self._heard.popitem(last=False)
