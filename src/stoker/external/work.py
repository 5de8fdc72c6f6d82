"""What is wanted elsewhere is written down in a transaction, and brought there by a job, as often as it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from stoker.external.looking import LOOK, SOON, Found
from stoker.external.peer import PeerAway, PeerRefused
from stoker.store import lodgings
from stoker.store.lodgings import Lodging
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.transports.base import Party
from stoker.work import Work, backoff

#: Kinds of jobs: one lodging is brought to what is wanted of it, by its id; what all of a kind need is made.
REACH, PREPARE = "lodging.reach", "lodging.prepare"
#: Seconds between tries, at most.
_LONGEST = 60.0
_log = structlog.get_logger("stoker.external")


class Hand(Protocol):
    """What jobs do at one peer. All raise PeerAway, and PeerRefused for what only somebody can put right."""

    def prepare(self) -> None:
        """What all lodgings need."""

    def bring(self, lodging: Lodging) -> Mapping[str, Any]:
        """Have there what is wanted, however far an earlier try came; returns what is to be remembered."""
        ...

    def remove(self, lodging: Lodging) -> None:
        """Though it may be gone, or never was there."""

    def close(self) -> None:
        """No more will be asked of it."""

    def names(self) -> Iterator[list[str]]:
        """What there is in places that are Stoker's alone, in portions."""
        ...

    def discard(self, name: str) -> None:
        """One of those."""

    def look(self, lodging: Lodging, since: datetime) -> list[Found]:
        """Results that came since then and were not taken yet, in their order."""
        ...

    def taken(self, lodging: Lodging, found: list[Found]) -> None:
        """These are in the database now."""


class Lodgings:
    """Inside transactions."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def open(self, tx: Tx, kind: str, name: str, party: Party, *, bring: bool = False) -> None:
        """``bring``: it has to be made before it is used."""
        id = lodgings.want(tx, kind, name, party.project_id, party.resource_id, None)
        if bring:
            self._reach(tx, id)

    def put(self, tx: Tx, kind: str, name: str, party: Party, body: str) -> None:
        """However often before a job gets to it, only the last one is carried."""
        self._reach(tx, lodgings.want(tx, kind, name, party.project_id, party.resource_id, body))

    def close(self, tx: Tx, kind: str, name: str) -> None:
        id = lodgings.end(tx, kind, name)
        if id is not None:
            self._reach(tx, id)

    def listen(self, tx: Tx, kind: str, name: str) -> None:
        """A run begins whose result will come there."""
        at = tx.now + SOON
        lodgings.listen(tx, kind, name, at, SOON)
        # Those that wait are not called off: a steady stream of runs must not put looks off for ever.
        self._work.defer(tx, LOOK, kind, {"kind": kind}, at=at)

    def _reach(self, tx: Tx, id: str) -> None:
        self._work.cancel(tx, REACH, id)
        self._work.defer(tx, REACH, id, {"id": id})


class Reaching:
    """The jobs that bring it there."""

    def __init__(self, store: Store, work: Work, hands: Mapping[str, Hand]) -> None:
        self._store = store
        self._work = work
        self._hands = hands
        work.register(REACH, self.reach)
        work.register(PREPARE, self.prepare)

    def begin(self) -> None:
        """Once, at the start."""

        def do(tx: Tx) -> None:
            for kind in self._hands:
                self._work.cancel(tx, PREPARE, kind)
                self._work.defer(tx, PREPARE, kind, {"kind": kind})

        self._store.write(do)

    def prepare(self, args: Mapping[str, Any]) -> None:
        if args["kind"] in self._hands:
            self._trying(PREPARE, args["kind"], args, self._hands[args["kind"]].prepare)

    def reach(self, args: Mapping[str, Any]) -> None:
        with self._store.read() as tx:
            lodging = lodgings.find(tx, args["id"])
        if lodging is not None and lodging.reached < lodging.revision:
            self._trying(REACH, lodging.id, args, lambda: bring(self._store, self._hand(lodging.kind), lodging))

    def _hand(self, kind: str) -> Hand:
        """Settings may have changed since it was wanted, and may change back. Raises PeerAway."""
        if kind not in self._hands:
            raise PeerAway(f"the settings name no place elsewhere where an {kind} could be")
        return self._hands[kind]

    def _trying(self, kind: str, key: str, args: Mapping[str, Any], do: Any) -> None:
        """What fails is tried again by another job. It has its own pauses, and no traceback that says nothing."""
        try:
            do()
        except (PeerAway, PeerRefused) as error:
            failures = args.get("failures", 0) + 1
            wait = min(backoff(failures - 1), _LONGEST)
            _log.warning("cannot be done yet", job=f"{kind}/{key}", problem=str(error), again_in=wait)

            def again(tx: Tx) -> None:
                said = {**args, "failures": failures}
                self._work.defer(tx, kind, key, said, at=tx.now + timedelta(seconds=wait))

            self._store.write(again)


def bring(store: Store, hand: Hand, lodging: Lodging) -> None:
    """Raises PeerAway, PeerRefused."""
    if lodging.gone:
        hand.remove(lodging)
        store.write(lambda tx: lodgings.forget(tx, lodging))
    else:
        details = hand.bring(lodging)
        store.write(lambda tx: lodgings.reached(tx, lodging, details))
