"""
Queues, messages, claims, webhooks and signed URLs, as Zaqar has them.

``Messaging`` is what the rest of Stoker uses; all of it takes the transaction. ``SignedUrls`` signs what opens one
queue to whoever holds it.
"""

from __future__ import annotations

from stoker.messaging.service import Listener, Messaging
from stoker.messaging.signed_urls import SignedUrls

__all__ = ["Listener", "Messaging", "SignedUrls"]
