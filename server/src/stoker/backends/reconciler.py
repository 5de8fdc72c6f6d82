"""
The reconciler: jobs that bring objects in external services to their desired state.

A transaction records the desired state and calls ``request``. A job applies the state, and retries until it succeeds.
While a service is unreachable, one job probes it; all pending objects wait for this job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

import structlog

from stoker.failures import ServiceRejected, ServiceUnavailable, backoff
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work

#: Kinds of jobs: apply the desired state of one object; probe the service of one kind of objects.
RECONCILE, PREPARE = "backend.reconcile", "backend.prepare"
#: Longest pauses in seconds: between retries of a rejected object, and between probes of an unreachable service.
_LONGEST, _LONGEST_AWAY = 60.0, 5.0
#: Limit of the jobs that one transaction defers.
_AT_ONCE = 200
_log = structlog.get_logger("stoker.backends")


@dataclass(frozen=True, slots=True)
class JobKinds:
    """
    The jobs of one reconciler: ``reconcile`` applies the desired state of one object, ``prepare`` probes a service.

    ``threads`` is the number of threads in each process that serve only these jobs; 0: the shared ones do.
    """

    reconcile: str
    prepare: str
    threads: int = 0


SERVICE_JOBS = JobKinds(RECONCILE, PREPARE)


class Controller(Protocol):
    """
    Applies the desired state of one kind of objects, called by jobs.

    ``prepare`` and ``reconcile`` raise ServiceUnavailable if the service is unreachable, and ServiceRejected if an
    operator has to correct the cause.
    """

    def prepare(self) -> None:
        """Create what all objects need, or only check that the service answers."""

    def pending(self, tx: Tx) -> Sequence[str]:
        """Return the ids of the objects whose desired state was not applied yet."""
        ...

    def reconcile(self, id: str, rejections: int) -> None:
        """
        Apply the desired state of an object, whatever an earlier attempt achieved, and record the result.

        ``rejections`` is the number of earlier attempts that the service rejected in succession.
        """


def request(work: Work, tx: Tx, kind: str, id: str, jobs: JobKinds = SERVICE_JOBS, at: datetime | None = None) -> None:
    """Apply the desired state of an object of this kind after ``tx`` has committed, or at a time."""
    work.defer_once(tx, jobs.reconcile, id, {"kind": kind, "id": id}, at=at)


class Reconciler:
    """The jobs that call the controllers. ``controllers``: by kind of objects."""

    def __init__(
        self, store: Store, work: Work, controllers: Mapping[str, Controller], jobs: JobKinds = SERVICE_JOBS
    ) -> None:
        self._store = store
        self._work = work
        self._controllers = controllers
        self._jobs = jobs
        work.register(jobs.reconcile, self.reconcile, threads=jobs.threads)
        work.register(jobs.prepare, self.prepare)

    def start(self) -> None:
        """Prepare all services, and apply all pending objects; called once at start-up."""
        for kind in self._controllers:
            self._defer(self._jobs.prepare, kind, {"kind": kind})

    def prepare(self, args: Mapping[str, Any]) -> None:
        """Job: prepare the service for one kind of objects, then apply the pending ones."""
        kind = args["kind"]
        if kind not in self._controllers:
            return
        try:
            self._controllers[kind].prepare()
        except (ServiceUnavailable, ServiceRejected) as error:
            tries = args.get("tries", 0)
            longest = _LONGEST_AWAY if isinstance(error, ServiceUnavailable) else _LONGEST
            pause = backoff(tries, longest=longest)
            _log.warning("reconcile.failed", job=f"{self._jobs.prepare}/{kind}", error=str(error), retry_seconds=pause)
            self._defer(self._jobs.prepare, kind, {**args, "tries": tries + 1}, pause)
        else:
            self._reconcile_all(kind, args.get("failures", 0), args.get("pending", 0))

    def reconcile(self, args: Mapping[str, Any]) -> None:
        """Job: apply the desired state of one object."""
        kind, id, failures = args["kind"], args["id"], args.get("failures", 0)
        rejections, pause = args.get("rejections", 0), backoff(failures, longest=_LONGEST)
        job: dict[str, Any] = {"job": f"{self._jobs.reconcile}/{kind}/{id}"}
        try:
            self._controller(kind).reconcile(id, rejections)
        except ServiceUnavailable as error:
            _log.warning("reconcile.failed", **job, error=str(error))
            probe = {"kind": kind, "failures": failures + 1, "pending": args.get("pending", 0)}
            self._store.write(lambda tx: self._await(tx, probe, pause))
        except ServiceRejected as error:
            _log.warning("reconcile.failed", **job, error=str(error), retry_seconds=pause)
            self._defer(
                self._jobs.reconcile, id, {**args, "failures": failures + 1, "rejections": rejections + 1}, pause
            )

    def _await(self, tx: Tx, probe: Mapping[str, Any], pause: float) -> None:
        """
        Defer the job that probes the service, unless one is pending. When the service answers, the job applies all
        pending objects.
        """
        if not self._work.is_pending(tx, self._jobs.prepare, probe["kind"]):
            self._again(tx, self._jobs.prepare, probe["kind"], probe, pause)

    def _reconcile_all(self, kind: str, failures: int, pending: int) -> None:
        """
        Defer a job for each pending object.

        ``failures``: number of attempts without progress although the service answered. ``pending``: number of pending
        objects at the previous attempt.
        """

        def gather(tx: Tx) -> Sequence[str]:
            # Cancelled before the query: an object that becomes pending afterwards finds no probe and defers a new one.
            self._work.cancel(tx, self._jobs.prepare, kind)
            return self._controllers[kind].pending(tx)

        def defer(tx: Tx, some: Sequence[str]) -> None:
            for id in some:
                self._again(tx, self._jobs.reconcile, id, {"kind": kind, "id": id, **progress})

        ids = self._store.write(gather)
        progress = {"failures": 0 if len(ids) < pending else failures, "pending": len(ids)}
        for start in range(0, len(ids), _AT_ONCE):
            self._store.write(partial(defer, some=ids[start : start + _AT_ONCE]))

    def _defer(self, kind: str, key: str, args: Mapping[str, Any], pause: float = 0) -> None:
        self._store.write(lambda tx: self._again(tx, kind, key, args, pause))

    def _again(self, tx: Tx, kind: str, key: str, args: Mapping[str, Any], pause: float = 0) -> None:
        self._work.defer_once(tx, kind, key, args, at=tx.now + timedelta(seconds=pause) if pause else None)

    def _controller(self, kind: str) -> Controller:
        """
        Return the controller. Raises ServiceUnavailable if the settings no longer select an external service: they may
        change back.
        """
        if kind not in self._controllers:
            raise ServiceUnavailable(f"the settings name no external service for a {kind}")
        return self._controllers[kind]
