"""
The registry of resource types, and the jobs that types and the engine defer.

Each type is a class of a module of this package, with a ``name`` of its own. An installed package names a type, or a
package of such modules, as an entry point in the group ``stoker.resources``; its types replace those of the same name.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from stoker.deployments import drift, run_end, server_runs
from stoker.deployments.checks import REMEDIATE
from stoker.deployments.run_end import DEADLINE as DEPLOYMENT_DEADLINE
from stoker.model.deployment import Owner
from stoker.policy import authorizer
from stoker.resources.base import WAKE, ResourceType
from stoker.stacks import operations, repetition
from stoker.stacks.engine import ADVANCE, DEADLINE, REFRESH, Engine
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.types.label_groups import REFRESH_DEADLINE, refresh_members, time_out_group
from stoker.types.publishing import publish
from stoker.types.remote_stack import REMOTE, RemoteStacks
from stoker.types.server_base import PUBLISH


def load() -> Mapping[str, ResourceType]:
    """Import all resource types; return them by name and by alias."""
    types = [*types_of(sys.modules[__name__])]
    for point in entry_points(group="stoker.resources"):
        named = point.load()
        types += types_of(named) if isinstance(named, ModuleType) else [named()]
    return {name: resource_type for resource_type in types for name in (resource_type.name, *resource_type.aliases)}


def types_of(package: ModuleType) -> Iterator[ResourceType]:
    """Yield the types of a package's modules. A class without a name of its own is a base of types."""
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for kind in vars(module).values():
            is_own = isinstance(kind, type) and kind.__module__ == module.__name__
            if is_own and issubclass(kind, ResourceType) and vars(kind).get("name"):
                yield kind()


Args = Mapping[str, Any]


def register_jobs(store: Store, engine: Engine) -> None:
    """Register the handlers of the jobs that the engine and resource types defer."""

    def doing(do: Callable[[Tx, Engine, Args], None], *, background: bool = False) -> Callable[[Args], None]:
        return lambda args: store.write(lambda tx: do(tx, engine, args), background=background)

    work = engine.env.work
    work.register(ADVANCE, doing(operations.go_on, background=True))
    work.register(DEADLINE, doing(operations.time_out))
    work.register(DEPLOYMENT_DEADLINE, doing(lambda tx, engine, args: run_end.expire(tx, engine.env, args)))
    work.register(REMEDIATE, doing(lambda tx, engine, args: drift.remediate(tx, engine.env, args)))
    work.register(server_runs.RERUN, lambda args: repetition.run_again(store, engine, args))
    work.register(authorizer.WINDOW_JOB, doing(lambda tx, _, args: server_runs.reevaluate(tx, work, args["server_id"])))
    work.register(WAKE, doing(lambda tx, _, args: tx.wake(Owner.resource(args["resource_id"]))))
    work.register(REMOTE, RemoteStacks(store, engine).go_on)
    work.register(PUBLISH, doing(publish))
    work.register(REFRESH, doing(refresh_members))
    work.register(REFRESH_DEADLINE, doing(time_out_group))
