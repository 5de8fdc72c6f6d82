"""
The messaging service: queues, messages, webhooks and signed URLs, modelled on Zaqar.

The rest of Stoker uses ``Messaging``; its methods act within the caller's transaction. ``SignedUrls`` signs URLs that
give access to one queue without a token.
"""

from __future__ import annotations

from stoker.messaging.service import Listener, Messaging
from stoker.messaging.signed_urls import SignedUrls

__all__ = ["Listener", "Messaging", "SignedUrls"]
