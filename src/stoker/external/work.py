"""
What is wanted elsewhere is written down in a transaction, and brought there by a job, as often as it takes.

While a service gives no answer one job finds out whether it is back; all that could not be brought waits for that job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

import structlog

from stoker.external.looking import LOOK, SOON, Found
from stoker.external.peer import PeerAway, PeerRefused
from stoker.messaging.signed_urls import AGENTS_PERIOD, agents_until
from stoker.store import lodgings, looks, resources, stacks
from stoker.store.lodgings import Lodging
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.transports.base import Party
from stoker.work import Work, backoff, defer_once

#: Kinds of jobs: one lodging is brought to what is wanted of it, by its id; its agent's URL is made anew; what all of a
#: kind need is made.
REACH, RENEW, PREPARE = "lodging.reach", "lodging.renew", "lodging.prepare"
#: In a lodging's details: the signed URL that its resource's agent has; None: the service signs none.
AGENT = "agent"
#: When a URL is due to be made anew, it is so for both.
_AFTER = timedelta(seconds=2)
#: Seconds between tries, at most: of what fails, and of finding out whether a service is back.
_LONGEST, _LONGEST_AWAY = 60.0, 5.0
#: Jobs that one transaction defers.
_AT_ONCE = 200
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

    def open(
        self, tx: Tx, kind: str, name: str, party: Party, *, bring: bool = False, opens_to: str | None = None
    ) -> None:
        """``bring``: it has to be made before it is used. ``opens_to``: a method that a URL is to be signed for."""
        by_itself = not bring and opens_to is None
        id, due = lodgings.want(
            tx, kind, name, party.project_id, party.resource_id, opens_to=opens_to, comes_by_itself=by_itself
        )
        if due:
            self._reach(tx, id)

    def put(self, tx: Tx, kind: str, name: str, party: Party, body: str) -> None:
        """However often before a job gets to it, only the last one is carried."""
        self._reach(tx, lodgings.want(tx, kind, name, party.project_id, party.resource_id, body)[0])

    def close(self, tx: Tx, kind: str, name: str) -> None:
        id = lodgings.end(tx, kind, name)
        if id is not None:
            self._reach(tx, id)

    def listen(self, tx: Tx, kind: str, name: str, until: datetime | None = None) -> None:
        """A run begins whose result will come there; or signals will, until then."""
        at = tx.now + SOON
        looks.listen(tx, kind, name, at, SOON, until)
        # Those that wait are not called off: a steady stream of runs must not put looks off for ever.
        self._work.defer(tx, LOOK, kind, {"kind": kind}, at=at)

    def _reach(self, tx: Tx, id: str) -> None:
        defer_once(self._work, tx, REACH, id, {"id": id})


class Reaching:
    """The jobs that bring it there."""

    def __init__(
        self, store: Store, work: Work, hands: Mapping[str, Hand], on_signed: Callable[[Tx, str], None]
    ) -> None:
        """``on_signed`` hears of every URL that was signed for a resource's agent, or was refused to it."""
        self._store = store
        self._work = work
        self._hands = hands
        self._on_signed = on_signed
        work.register(REACH, self.reach)
        work.register(RENEW, self.renew)
        work.register(PREPARE, self.prepare)

    def begin(self) -> None:
        """Once, at the start."""

        def do(tx: Tx) -> None:
            for kind in self._hands:
                self._again(tx, PREPARE, kind, {"kind": kind}, 0)

        self._store.write(do)

    def prepare(self, args: Mapping[str, Any]) -> None:
        """And have brought what waits for that."""
        kind = args["kind"]
        if kind not in self._hands:
            return
        try:
            self._hands[kind].prepare()
        except (PeerAway, PeerRefused) as error:
            tries = args.get("tries", 0) + 1
            pause = min(backoff(tries - 1), _LONGEST_AWAY if isinstance(error, PeerAway) else _LONGEST)
            _log.warning("cannot be done yet", job=f"{PREPARE}/{kind}", problem=str(error), again_in=pause)
            self._store.write(lambda tx: self._again(tx, PREPARE, kind, {**args, "tries": tries}, pause))
        else:
            self._have_all_brought(kind, args.get("failures", 0), args.get("behind", 0))

    def reach(self, args: Mapping[str, Any]) -> None:
        with self._store.read() as tx:
            lodging = lodgings.find(tx, args["id"])
        if lodging is None or lodging.reached == lodging.revision:
            return
        failures = args.get("failures", 0) + 1
        pause = min(backoff(failures - 1), _LONGEST)
        try:
            self._bring(lodging)
        except PeerAway as error:
            _log.warning("cannot be done yet", job=f"{REACH}/{lodging.id}", problem=str(error))
            until = {"kind": lodging.kind, "failures": failures, "behind": args.get("behind", 0)}
            self._store.write(lambda tx: self._await(tx, until, pause))
        except PeerRefused as error:
            _log.warning("cannot be done yet", job=f"{REACH}/{lodging.id}", problem=str(error), again_in=pause)
            self._store.write(lambda tx: self._again(tx, REACH, lodging.id, {**args, "failures": failures}, pause))

    def renew(self, args: Mapping[str, Any]) -> None:
        def do(tx: Tx) -> None:
            if lodgings.renew(tx, args["id"]):
                self._again(tx, REACH, args["id"], {"id": args["id"]}, 0)

        self._store.write(do)

    def _await(self, tx: Tx, until: Mapping[str, Any], pause: float) -> None:
        """The job that finds out whether the service is back has all brought that is behind."""
        if not self._work.waits(tx, PREPARE, until["kind"]):
            self._again(tx, PREPARE, until["kind"], until, pause)

    def _have_all_brought(self, kind: str, failures: int, behind: int) -> None:
        """``failures``: how often nothing came of that though the service answered; ``behind``: so many last time."""

        def gather(tx: Tx) -> list[str]:
            # Before the look: who finds none waiting afterwards has another one wait.
            self._work.cancel(tx, PREPARE, kind)
            return lodgings.behind(tx, kind)

        def defer(tx: Tx, ids: Sequence[str]) -> None:
            for id in ids:
                self._again(tx, REACH, id, {"id": id, **progress}, 0)

        found = self._store.write(gather)
        progress = {"failures": 0 if len(found) < behind else failures, "behind": len(found)}
        for start in range(0, len(found), _AT_ONCE):
            self._store.write(partial(defer, ids=found[start : start + _AT_ONCE]))

    def _again(self, tx: Tx, kind: str, key: str, args: Mapping[str, Any], pause: float) -> None:
        defer_once(self._work, tx, kind, key, args, at=tx.now + timedelta(seconds=pause) if pause else None)

    def _bring(self, lodging: Lodging) -> None:
        """What an agent was given there is said to its resource, and is made anew before it ends."""
        hand = self._hand(lodging.kind)
        if lodging.gone or lodging.opens_to is None:
            bring(self._store, hand, lodging)
            return
        details = hand.bring(lodging)
        is_new = AGENT not in lodging.details or details.get(AGENT) != lodging.details[AGENT]

        def do(tx: Tx) -> None:
            _hold_stack(tx, lodging.resource_id)
            lodgings.reached(tx, lodging, details)
            if lodging.body is None:  # documents come again anyhow, long before
                at = agents_until(lodging.resource_id, tx.now) - 2 * AGENTS_PERIOD + _AFTER
                defer_once(self._work, tx, RENEW, lodging.id, {"id": lodging.id}, at=at)
            if is_new:
                self._on_signed(tx, lodging.resource_id)

        self._store.write(do)

    def _hand(self, kind: str) -> Hand:
        """Settings may have changed since it was wanted, and may change back. Raises PeerAway."""
        if kind not in self._hands:
            raise PeerAway(f"the settings name no place elsewhere where an {kind} could be")
        return self._hands[kind]


def bring(store: Store, hand: Hand, lodging: Lodging) -> None:
    """Raises PeerAway, PeerRefused."""
    if lodging.gone:
        hand.remove(lodging)
        store.write(lambda tx: lodgings.forget(tx, lodging))
    else:
        details = hand.bring(lodging)
        store.write(lambda tx: lodgings.reached(tx, lodging, details))


def _hold_stack(tx: Tx, resource_id: str) -> None:
    """Before anything else is held."""
    resource = resources.find(tx, resource_id)
    if resource is not None:
        stacks.find(tx, resource.stack_id, hold=True)
