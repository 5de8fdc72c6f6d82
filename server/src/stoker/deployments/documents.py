"""
Documents: the configs that one server has to run, as bytes of JSON.

Every derived config is rendered once, when it is written. A document joins these texts at the first read after a change
and is cached until the next change. Rendering whole documents at every write would make n deployments on one server
cost n² (docs/decisions/joined-documents.md). There are two forms. Heat's form lists every deployment of the server. The
agent's form lists only the runs that the agent has yet to start or report, so it stays small.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import structlog

from stoker.bounded_dict import BoundedDict
from stoker.deployments.derive import redact_config
from stoker.model.deployment import OWN_CHANNEL
from stoker.store import checks, deployments, documents, rows
from stoker.store.checks import ToCheck
from stoker.store.deployments import Delivery
from stoker.store.documents import AgentHead, ToRun
from stoker.store.notifier import ALL, SERVERS, deployment_topic
from stoker.store.open import Store
from stoker.store.tx import Tx

_log = structlog.get_logger("stoker.deployments")
_BATCH_SECONDS = 0.05
#: Runs in one transaction: a small number, so that other writers need not wait long.
_BATCH_SIZE = 500

#: Pairs of deployment id and derived config id, each of which identifies a run.
RunKeys = Sequence[tuple[str, str]]
#: Default of the seconds for which a poll without news stays open. Each document contains the setting.
HEARTBEAT = 30
#: Default of the bytes kept of each stream of a run. Each document contains the setting; agents send no more.
LOG_BYTES = 8 * 1024 * 1024
_AGENT = "agent"
_NO_HEAD = AgentHead()
#: Estimated bytes of an entry of the cache, without its texts.
_ENTRY_BYTES = 500
_RESOURCES = 100_000
#: In an entry of the agent's document: the agent must stop the run, or not start it, and report that.
_CANCEL = ',"cancel":true'


@dataclass(slots=True)
class Document:
    """One form of a server's document."""

    revision: int
    body: bytes
    #: Runs in the document that were never sent. The first answer with this document empties the list.
    unsent: RunKeys = ()
    #: When those of the agent's own document were requested.
    requested_at: Sequence[datetime] = ()
    #: Runs in the document that the agent has not acknowledged. The receipt empties the list.
    unreceived: RunKeys = ()
    #: What the agent's own document contains besides its revision, for comparison within this process.
    content: int = 0
    #: The server's own agent has reported since that runs have ended.
    is_outdated: bool = False

    @property
    def etag(self) -> str:
        """The revision as the tag of an answer, in quotes."""
        return f'"{self.revision}"'


def _size(server_id: str, form: str, document: Document) -> int:
    return _ENTRY_BYTES + len(server_id) + len(form) + len(document.body)


class DeliveryTracker:
    """
    Records which runs were sent to an agent and which the agent has acknowledged: in the background, in batches.

    If the process ends before a write, the agent's first report of the run records its delivery.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        #: By deployment id and derived config id: an agent usually acknowledges a document at once.
        self._pending: dict[tuple[str, str], Delivery] = {}

    def record(self, keys: RunKeys, channel: str, *, received: bool) -> None:
        """Record runs as sent now by ``channel``, or as ``received``. Does no I/O."""
        now = self._store.clock.now()
        with self._lock:
            is_scheduled = bool(self._pending)
            for key in keys:
                sent = self._pending.setdefault(key, Delivery(*key, channel, now, received))
                if received:
                    self._pending[key] = sent._replace(received=True)
        if not is_scheduled:
            timer = threading.Timer(_BATCH_SECONDS, self._write)
            timer.daemon = True
            timer.start()

    def _write(self) -> None:
        with self._lock:
            # Sorted, so that two processes lock the rows in the same order.
            deliveries, self._pending = sorted(self._pending.values()), {}
        try:
            for start in range(0, len(deliveries), _BATCH_SIZE):
                # Not durable: after a power failure, too, the agent's first report records the delivery.
                self._store.write(partial(_record, batch=deliveries[start : start + _BATCH_SIZE]), durable=False)
        except Exception as error:  # for example at a shutdown; the agents' reports record the deliveries later
            _log.warning("delivery.not_recorded", error=f"{type(error).__name__}: {error}")


def _record(tx: Tx, batch: Sequence[Delivery]) -> None:
    deployments.record_deliveries(tx, batch)
    for delivery in batch:
        tx.notify(deployment_topic(delivery.deployment_id))


class Documents:
    """
    A cache of documents. ``agent``, ``heat`` and ``get_cached`` never block, ``load_*`` read the database.
    Notifications drop cached documents after the commit of a change, except for those that are only outdated.
    """

    def __init__(
        self,
        store: Store,
        max_bytes: int = 32 * 1024 * 1024,
        log_bytes: int = LOG_BYTES,
        heartbeat: int = HEARTBEAT,
    ) -> None:
        self._store = store
        self._deliveries = DeliveryTracker(store)
        self._log_bytes = log_bytes
        self._heartbeat = heartbeat
        self._max_bytes = max_bytes
        self._bytes = 0
        self._lock = threading.Lock()
        #: Server id → form → document, least recently used first.
        self._kept: OrderedDict[str, dict[str, Document]] = OrderedDict()
        #: Number of times that the whole cache was cleared. A document read before a clear must not be cached after it:
        #: read the number before the transaction that loads a document for ``cache``.
        self.epoch = 0
        #: Server id → newest notified revision. A slow reader must not overwrite a newer document with an older one.
        self._notified_revisions: OrderedDict[str, int] = OrderedDict()
        #: Resource id → id of the server that the resource represents. The pair never changes.
        self._servers: BoundedDict[str, str] = BoundedDict(_RESOURCES)
        store.notifier.subscribe(self._on_notification, SERVERS)

    def agent(self, server_id: str, *, with_modes: bool = True, tag: str | None = None) -> Document | None:
        """
        Return the cached document of the server's own agent, or None. See ``load_agents``.

        ``tag``: the ETag of a document that may be outdated, because the agent has it.
        """
        return self._find(server_id, _agent_form(with_modes), tag)

    def load_agents(self, wanted: Sequence[tuple[str, bool]]) -> list[Document]:
        """
        Load and cache the documents of several servers' own agents: pairs of server id and ``with_modes``.

        ``with_modes``: the agent knows the modes of runs. Other agents would apply the config of a run that only shows
        what it would change, so their documents do not contain such runs.
        """
        epoch = self.epoch
        with self._store.read() as tx:
            ids = {server_id for server_id, _ in wanted}
            heads, to_run = documents.agent_heads(tx, ids), documents.to_run_on(tx, ids)
            loaded = [
                self._render_agent(tx, server_id, with_modes, heads.get(server_id, _NO_HEAD), to_run.get(server_id, ()))
                for server_id, with_modes in wanted
            ]
        return [
            self._keep(server_id, _agent_form(with_modes), document, epoch)
            for (server_id, with_modes), document in zip(wanted, loaded, strict=True)
        ]

    def _render_agent(
        self, tx: Tx, server_id: str, with_modes: bool, head: AgentHead, runs: Sequence[ToRun]
    ) -> Document:
        entries: list[str] = []
        unsent, unreceived, requested_at = [], [], []
        for run in runs:
            if run.mode is not None and not with_modes:
                continue
            entries.append(_render(run))
            key = run.deployment_id, run.config_id
            if run.is_unreceived:
                unreceived.append(key)
            if run.is_unsent:
                unsent.append(key)
                if run.queued_at is not None:
                    requested_at.append(rows.from_micros(run.queued_at))
        to_check = checks.to_check(tx, server_id) if head.has_checks and with_modes else ()
        start = f'{{"server_id":"{server_id}","revision":{head.revision},'
        rest = (
            f'"poll_wait":{self._heartbeat},"concurrency":{head.concurrency},"max_log_bytes":{self._log_bytes},'
            f'"deployments":[{",".join(entries)}]{_render_checks(to_check)}}}'
        )
        return Document(head.revision, (start + rest).encode(), unsent, requested_at, unreceived, content=hash(rest))

    def heat(self, server_id: str, project_id: str, *, redacted: bool = False) -> Document | None:
        """Return the cached document in Heat's form, or None. ``redacted``: as shown to people, without secrets."""
        return self._find(server_id, _heat_form(project_id, redacted))

    def load_heat(self, server_id: str, project_id: str, *, redacted: bool = False) -> Document:
        """Load and cache the document in Heat's form, with the deployments of one project."""
        epoch = self.epoch
        with self._store.read() as tx:
            revision = documents.revision(tx, server_id)
            bodies = documents.bodies(tx, server_id, project_id)
            if redacted:
                bodies = [rows.dump(redact_config(tx, rows.load(body))) for body in bodies]
            unsent = documents.unsent(tx, server_id, project_id) if bodies and not redacted else ()
        document = Document(revision, f'{{"metadata":[{",".join(bodies)}]}}'.encode(), unsent)
        # Users may ask for any id. Documents of ids without deployments are not cached, so that they cannot fill the
        # cache.
        return self._keep(server_id, _heat_form(project_id, redacted), document, epoch) if revision else document

    def get_cached(self, resource_id: str, form: str) -> Document | None:
        """Return the cached document of the server that the resource represents, or None if none is cached."""
        server_id = self._servers.get(resource_id)
        return None if server_id is None else self._find(server_id, f"{resource_id}/{form}")

    def cache(self, resource_id: str, server_id: str, form: str, document: Document, epoch: int) -> Document:
        """Cache a document under a resource's id. ``epoch`` is from before the transaction that read it."""
        self._servers.put(resource_id, server_id)
        return self._keep(server_id, f"{resource_id}/{form}", document, epoch)

    def record_sent(self, document: Document, channel: str) -> None:
        """
        Record that an answer by ``channel`` carries the document, which is the receipt unless Stoker's own agent gets
        it. Does no I/O.
        """
        if document.unsent:
            keys, document.unsent = document.unsent, ()
            requested_at, document.requested_at = document.requested_at, ()
            now = self._store.clock.now()
            for at in requested_at:
                self._store.metrics.delivery_seconds.observe(max(0.0, (now - at).total_seconds()))
            self._deliveries.record(keys, channel, received=channel != OWN_CHANNEL)

    def record_receipt(self, document: Document) -> None:
        """Record that Stoker's own agent has received the document. Does no I/O."""
        if document.unreceived:
            keys, document.unreceived = document.unreceived, ()
            self._deliveries.record(keys, OWN_CHANNEL, received=True)

    def _find(self, server_id: str, form: str, tag: str | None = None) -> Document | None:
        with self._lock:
            forms = self._kept.get(server_id)
            if forms is None:
                return None
            self._kept.move_to_end(server_id)
            document = forms.get(form)
            return None if document is not None and document.is_outdated and document.etag != tag else document

    def _keep(self, server_id: str, form: str, document: Document, epoch: int) -> Document:
        with self._lock:
            if epoch == self.epoch and document.revision >= self._notified_revisions.get(server_id, 0):
                forms = self._kept.setdefault(server_id, {})
                self._kept.move_to_end(server_id)
                replaced = forms.get(form)
                forms[form] = document
                self._bytes += _size(server_id, form, document) - (_size(server_id, form, replaced) if replaced else 0)
                while self._bytes > self._max_bytes and self._kept:
                    self._drop(next(iter(self._kept)))
        return document

    def _drop(self, server_id: str) -> None:
        forms = self._kept.pop(server_id)
        self._bytes -= sum(_size(server_id, form, document) for form, document in forms.items())

    def _on_notification(self, notifications: Mapping[str, int]) -> None:
        with self._lock:
            if ALL in notifications:
                self.epoch += 1
                self._kept.clear()
                self._bytes = 0
                return
            for topic, revision in notifications.items():
                _, server_id, *report = topic.split("/")
                if report:
                    for document in self._kept.get(server_id, {}).values():
                        document.is_outdated = True
                elif server_id in self._kept:
                    self._drop(server_id)
                self._notified_revisions[server_id] = max(revision, self._notified_revisions.get(server_id, 0))
                self._notified_revisions.move_to_end(server_id)
                if len(self._notified_revisions) > 100_000:
                    self._notified_revisions.popitem(last=False)


def _agent_form(with_modes: bool) -> str:
    return _AGENT if with_modes else f"{_AGENT}/apply"


def _render(run: ToRun) -> str:
    """Return a run's entry in the agent's document."""
    mode = f',"mode":"{run.mode}"' if run.mode else ""
    cancel = _CANCEL if run.is_cancelling else ""
    trigger = f',"trigger_id":"{run.trigger_id}"' if run.trigger_id else ""
    return f'{run.body[:-1]},"deployment_id":"{run.deployment_id}"{trigger}{mode}{cancel}}}'


def _render_checks(to_check: Sequence[ToCheck]) -> str:
    """Return the member ``checks`` of the agent's document, or "" without checks."""
    entries = ",".join(
        f'{check.body[:-1]},"deployment_id":"{check.deployment_id}","interval":{rows.dump(check.interval)},'
        f'"requested":{rows.dump(check.requested)}}}'
        for check in to_check
    )
    return f',"checks":[{entries}]' if entries else ""


def _heat_form(project_id: str, redacted: bool) -> str:
    return f"{project_id}/redacted" if redacted else project_id
