"""
Results that come to a Swift or a Zaqar are looked for, as long as a run waits for one.

One job looks at many places in turn, often at those where a run has just begun and ever less often where nothing comes;
when the run ends the looking ends. A Zaqar that calls when a message was posted makes the next look come at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog

from stoker.external.peer import PeerAway, PeerRefused
from stoker.model.errors import Invalid, StokerError, Unavailable
from stoker.store import lodgings, looks
from stoker.store.lodgings import Lodging
from stoker.store.looks import Due, Looked
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work

if TYPE_CHECKING:
    from stoker.external.work import Hand

#: Kind of the job that looks for results, by the kind of place.
LOOK = "lodging.look"
SOON, LONGEST = timedelta(seconds=0.2), timedelta(seconds=30)
#: What came so long before a run began may still be its result: clocks differ.
TOLERANCE = timedelta(seconds=2)
#: What a pause grows by while nothing comes; where the peer calls, looking is only for calls that are lost.
_GROWTH, _GROWTH_WITH_CALLS = 1.5, 4.0
#: Places that one job looks at.
_AT_ONCE = 100
_log = structlog.get_logger("stoker.external")


@dataclass(frozen=True, slots=True)
class Found:
    """A result; ``mark`` tells it from others in its place."""

    mark: str
    #: None: more than anybody has to say.
    data: bytes | None


#: (the transaction, the resource it is for, what was sent). Raises StokerError for what is no result.
OnSignal = Callable[[Tx, str, bytes], None]


class Looking:
    def __init__(self, store: Store, work: Work, hands: Mapping[str, Hand], on_signal: OnSignal) -> None:
        self._store = store
        self._work = work
        self._hands = hands
        self._on_signal = on_signal
        work.register(LOOK, self.look)

    def look(self, args: Mapping[str, Any]) -> None:
        kind = args["kind"]
        hand = self._hands.get(kind)
        if hand is None:  # settings may change back
            self._store.write(lambda tx: self._work.defer(tx, LOOK, kind, args, at=tx.now + LONGEST))
            return
        with self._store.read() as tx:
            due = looks.due(tx, kind, _AT_ONCE)
        done = [self._look(hand, each) for each in due]

        def go_on(tx: Tx) -> None:
            self._work.cancel(tx, LOOK, kind)
            looks.looked(tx, done)
            following = looks.next_look(tx, kind)
            if following is not None:
                self._work.defer(tx, LOOK, kind, {"kind": kind}, at=max(following, tx.now))

        self._store.write(go_on)

    def ring(self, resource_id: str) -> None:
        """A result is said to be in the resource's queue."""

        def do(tx: Tx) -> None:
            if looks.ring(tx, resource_id, SOON):
                self._work.defer(tx, LOOK, lodgings.QUEUE, {"kind": lodgings.QUEUE})

        self._store.write(do)

    def _look(self, hand: Hand, due: Due) -> Looked:
        lodging = due.lodging
        if due.since is None:
            return Looked(lodging, None)
        found: list[Found] = []
        try:
            found = hand.look(lodging, due.since)
            for each in found:
                self._take(lodging, each)
            if found:
                hand.taken(lodging, found)
        except (PeerAway, PeerRefused) as error:
            _log.warning("cannot look for a result", resource=lodging.resource_id, problem=str(error))
        if found:
            return Looked(lodging, datetime.now(UTC) + SOON, SOON)
        growth = _GROWTH_WITH_CALLS if lodging.details.get("calls") else _GROWTH
        pause = min(lodging.pause * growth, LONGEST)
        return Looked(lodging, datetime.now(UTC) + pause, pause)

    def _take(self, lodging: Lodging, found: Found) -> None:
        def do(tx: Tx) -> None:
            if found.data is None:
                raise Invalid("a result may have 16 MiB")
            self._on_signal(tx, lodging.resource_id, found.data)
            looks.heard(tx, lodging.id, found.mark)

        try:
            self._store.write(do)
        except Unavailable:  # the database: what came is looked for again
            raise
        except StokerError as error:
            _log.warning("what came is no result", resource=lodging.resource_id, problem=error.message)
            self._store.write(lambda tx: looks.heard(tx, lodging.id, found.mark))
