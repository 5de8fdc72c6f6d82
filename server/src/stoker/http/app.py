"""The components that handlers use; ``serve`` creates them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from stoker.backends.provider import Provider
from stoker.backends.result_polling import ResultPoller
from stoker.deployments.documents import Documents
from stoker.embedded import SiteKey
from stoker.http.agent.batches import AgentBatches
from stoker.http.console.session import Sessions
from stoker.http.event_stream import Streams
from stoker.http.health import CertificateExpiry, DiskSpace, HealthReport
from stoker.http.hold import Waiters
from stoker.http.metrics import FiguresReader, WorkerMetrics
from stoker.identity.authentication import TokenCheck
from stoker.identity.directory import Directory
from stoker.identity.stack_users import CallTokens, SignalTokens
from stoker.messaging import Messaging, SignedUrls
from stoker.metrics import Metrics
from stoker.objects.operations import WriteCallbacks
from stoker.servers import Servers
from stoker.settings import Settings
from stoker.stacks.engine import Engine
from stoker.store.open import Store
from stoker.work import Work
from stoker.work.retention import Retention


@dataclass(frozen=True, slots=True)
class App:
    """The components of one server process. Handlers receive this object as ``RequestContext.app``."""

    settings: Settings
    store: Store
    started_at: datetime
    identity: Directory
    tokens: TokenCheck
    #: The sessions of the console.
    sessions: Sessions
    signal_tokens: SignalTokens
    waiters: Waiters
    streams: Streams
    documents: Documents
    work: Work
    servers: Servers
    engine: Engine
    messaging: Messaging
    #: For the queues of resources.
    agents_urls: SignedUrls
    object_callbacks: WriteCallbacks
    site_key: SiteKey
    call_tokens: CallTokens
    health: HealthReport
    disk_space: DiskSpace
    certificate: CertificateExpiry
    agent_batches: AgentBatches
    #: Deletes old records.
    retention: Retention
    figures: FiguresReader = field(default_factory=FiguresReader)
    #: Set in one of several worker processes.
    worker: WorkerMetrics | None = None
    #: Set if an external Swift or Zaqar replaces an embedded service.
    result_poller: ResultPoller | None = None
    #: What the provider of a cloud offers; nothing without one.
    provider: Provider = field(default_factory=Provider)

    @property
    def metrics(self) -> Metrics:
        return self.store.metrics
