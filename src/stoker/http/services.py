"""What handlers may use; ``serve`` joins it."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.deployments.documents import Documents
from stoker.external.looking import Looking
from stoker.http.waiters import Waiters
from stoker.identity.checks import KeyCheck, TokenCheck
from stoker.identity.directory import Directory
from stoker.identity.signal_tokens import CallTokens, SignalTokens
from stoker.lodgings import SiteKey
from stoker.messaging import Messaging, SignedUrls
from stoker.objects import Objects
from stoker.servers import Servers
from stoker.settings import Settings
from stoker.stacks.engine import Engine
from stoker.store.open import Store
from stoker.work import Work


@dataclass(frozen=True, slots=True)
class Services:
    settings: Settings
    store: Store
    identity: Directory
    tokens: TokenCheck
    keys: KeyCheck
    signal_tokens: SignalTokens
    waiters: Waiters
    documents: Documents
    work: Work
    servers: Servers
    engine: Engine
    messaging: Messaging
    signed_urls: SignedUrls
    #: Of the queues that stand for resources.
    agents_urls: SignedUrls
    objects: Objects
    site_key: SiteKey
    call_tokens: CallTokens
    #: Where a Swift or a Zaqar stands in for the embedded ones.
    looking: Looking | None = None
