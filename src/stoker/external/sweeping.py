"""
What was made for resources that are no more, taken away: the work of ``stoker db sweep``.

Nothing is left over as long as all goes well. A database that was put back from a copy, a peer that was changed for
another, or an agent that reported after its deployment was deleted may leave something.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stoker.external.peer import PeerAway, PeerRefused
from stoker.external.work import Hand, bring
from stoker.objects import Objects
from stoker.store import leftovers, lodgings, queues
from stoker.store.lodgings import Lodging
from stoker.store.open import Store
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Swept:
    what: str
    #: Why it is still there; None: it is gone, or would be.
    problem: str | None = None


def sweep(store: Store, objects: Objects, hands: Mapping[str, Hand], *, dry_run: bool) -> Iterator[Swept]:
    """What is found, one by one, as soon as it is removed."""
    yield from _embedded(store, objects, dry_run)
    yield from _elsewhere(store, hands, dry_run)
    for kind, hand in hands.items():
        yield from _strays(store, kind, hand, dry_run)


def _embedded(store: Store, objects: Objects, dry_run: bool) -> Iterator[Swept]:
    def do(tx: Tx) -> list[Swept]:
        found = []
        for queue in leftovers.of_queues(tx):
            found.append(Swept(f"queue {queue.name} of project {queue.project_id}"))
            if not dry_run:
                queues.delete(tx, queue.id)
        for account, name in leftovers.of_containers(tx):
            found.append(Swept(f"container {name} of project {account}"))
            if not dry_run:
                objects.delete_container_and_all(tx, account, name)
        for account, container, name in leftovers.of_objects(tx):
            found.append(Swept(f"object {container}/{name} of project {account}"))
            if not dry_run:
                objects.discard(tx, account, container, name)
        return found

    yield from store.write(do)


def _elsewhere(store: Store, hands: Mapping[str, Hand], dry_run: bool) -> Iterator[Swept]:
    with store.read() as tx:
        found = lodgings.left_over(tx)
    for each in found:
        yield _remove(store, hands.get(each.kind), each, dry_run)


def _remove(store: Store, hand: Hand | None, found: Lodging, dry_run: bool) -> Swept:
    what = f"{found.kind} {found.name} of project {found.project_id}, elsewhere"
    if hand is None:
        return Swept(what, f"the settings name no place where an {found.kind} could be")
    if dry_run:
        return Swept(what)

    def end(tx: Tx) -> Lodging | None:
        lodgings.end(tx, found.kind, found.name)
        return lodgings.find(tx, found.id)

    going = store.write(end)
    try:
        if going is not None:
            bring(store, hand, going)
    except (PeerAway, PeerRefused) as error:
        return Swept(what, str(error))
    return Swept(what)


def _strays(store: Store, kind: str, hand: Hand, dry_run: bool) -> Iterator[Swept]:
    """What lies in a place that is Stoker's own and stands in no record: first looked at there, then here."""
    try:
        for names in hand.names():
            with store.read() as tx:
                known = lodgings.known(tx, kind, names)
            for name in names:
                if name not in known:
                    if not dry_run:
                        hand.discard(name)
                    yield Swept(f"{kind} {name}, elsewhere, of no record")
    except (PeerAway, PeerRefused) as error:
        yield Swept(f"{kind}s of no record", str(error))
