"""Jobs of the resource types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stoker.stacks.engine import REFRESH, Engine
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.types import label_groups, publishing
from stoker.types.label_groups import REFRESH_DEADLINE
from stoker.types.remote_stack import REMOTE, RemoteStacks
from stoker.types.server_base import PUBLISH


def register(store: Store, engine: Engine) -> None:
    """Register the handlers of the jobs that resource types defer."""

    def doing(do: Callable[[Tx, Engine, Mapping[str, Any]], None]) -> Callable[[Mapping[str, Any]], None]:
        return lambda args: store.write(lambda tx: do(tx, engine, args))

    work = engine.env.work
    work.register(REMOTE, RemoteStacks(store, engine).go_on)
    work.register(PUBLISH, doing(publishing.publish))
    work.register(REFRESH, doing(label_groups.refresh_members))
    work.register(REFRESH_DEADLINE, doing(label_groups.time_out))
