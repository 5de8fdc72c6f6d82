"""The components that handlers use; ``serve`` creates them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from stoker.backends.cloud.credentials import SiteCredentials
from stoker.backends.cloud.delegated_credentials import DelegatedCredentials
from stoker.backends.result_polling import ResultPoller
from stoker.deployments.documents import Documents
from stoker.embedded import SiteKey
from stoker.http.agent_batches import AgentBatches
from stoker.http.gauges import FiguresReader
from stoker.http.health_report import HealthReport
from stoker.http.pending_polls import PendingPolls
from stoker.http.relay.sessions import Sessions
from stoker.http.stream_limits import StreamLimits
from stoker.http.waiters import Waiters
from stoker.http.worker_metrics import WorkerMetrics
from stoker.identity.checks import KeyCheck, TokenCheck
from stoker.identity.directory import Directory
from stoker.identity.signal_tokens import CallTokens, SignalTokens
from stoker.messaging import Messaging, SignedUrls
from stoker.objects import Objects
from stoker.servers import Servers
from stoker.settings import Settings
from stoker.stacks.engine import Engine
from stoker.store.open import Store
from stoker.work import Work


@dataclass(frozen=True, slots=True)
class App:
    """The components of one server process. Handlers receive this object as ``RequestContext.app``."""

    settings: Settings
    store: Store
    started_at: datetime
    identity: Directory
    tokens: TokenCheck
    keys: KeyCheck
    signal_tokens: SignalTokens
    waiters: Waiters
    streams: StreamLimits
    documents: Documents
    work: Work
    servers: Servers
    engine: Engine
    messaging: Messaging
    signed_urls: SignedUrls
    #: For the queues of resources.
    agents_urls: SignedUrls
    objects: Objects
    site_key: SiteKey
    call_tokens: CallTokens
    health: HealthReport
    agent_batches: AgentBatches
    pending_polls: PendingPolls = field(default_factory=PendingPolls)
    #: The sessions of shared polls of relays.
    relay_sessions: Sessions = field(default_factory=Sessions)
    figures: FiguresReader = field(default_factory=FiguresReader)
    #: Set in one of several worker processes.
    worker: WorkerMetrics | None = None
    #: Set if an external Swift or Zaqar replaces an embedded service.
    result_poller: ResultPoller | None = None
    #: Set if stacks have objects at an OpenStack.
    cloud_credentials: SiteCredentials | DelegatedCredentials | None = None
    #: Set if Stoker acts for the owners of stacks at a cloud.
    delegations: DelegatedCredentials | None = None
