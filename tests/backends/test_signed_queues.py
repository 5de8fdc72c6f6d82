"""Our agent at a real Zaqar by URLs that this Zaqar signs: they are renewed before their end, and lost on nobody."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from stoker.messaging.signed_urls import AGENTS_PERIOD, agents_until, format_time
from stoker.store import rows
from stoker.store.encryption import Encryption, derive_key
from stoker.store.open import Store
from stoker.store.rows import SecretColumns
from support import query
from support.agents import own_agent
from support.backends import CLIENT, ask, greetings, read_signed_queue, zaqar_flags
from support.server import Served, served

SCRIPT = '#!/bin/sh\necho "$who" >>"$WORK/runs"\n'


def queued(*names: str) -> dict[str, Any]:
    return greetings("ZAQAR_MESSAGE", dict.fromkeys(names, "ZAQAR_SIGNAL"), script=SCRIPT, agent="stoker")


def section(stoker: Served, stack: str) -> dict[str, str]:
    return (stoker.outputs(stack).get("agent") or {}).get("zaqar") or {}


def signed(zaqar, queue: str, project: str, methods: list[str], seconds: int) -> dict[str, Any]:
    """By this Zaqar, for so long."""
    ends = datetime.now(UTC) + timedelta(seconds=seconds)
    asked = {"paths": ["messages"], "methods": methods, "expires": f"{ends:%Y-%m-%dT%H:%M:%S}"}
    headers = {**CLIENT, "X-Project-Id": project}
    return dict(ask("POST", f"{zaqar.url}/v2/queues/{queue}/share", asked, headers).body)


@dataclass(frozen=True)
class Lodged:
    """What Stoker keeps of a queue elsewhere."""

    store: Store
    name: str
    secrets: SecretColumns

    @property
    def agents(self) -> dict[str, Any]:
        return dict(self._details["agent"])

    def shorten(self, zaqar, project: str) -> str:
        """Have the agent's URL end soon; when."""
        made = signed(zaqar, self.name, project, self.agents["methods"], 900)
        changed = self.secrets.dump({**self._details, "agent": made}, always=True)
        text = "UPDATE remote_objects SET details = :details WHERE name = :name"
        self.store.write(lambda tx: query.change(tx, text, details=changed, name=self.name))
        return str(made["expires"])

    @property
    def is_at_rest(self) -> bool:
        """What is wanted of it is there."""
        text = "SELECT observed_generation = desired_generation FROM remote_objects WHERE name = :name"
        with self.store.read() as tx:
            return bool(query.scalar(tx, text, name=self.name))

    @property
    def _details(self) -> dict[str, Any]:
        with self.store.read() as tx:
            column = query.scalar(tx, "SELECT details FROM remote_objects WHERE name = :name", name=self.name)
        return dict(rows.load(self.secrets.decrypt(column)))


def secrets_of(stoker: Served) -> SecretColumns:
    """With the key of this test's site: what is kept of a signed URL is encrypted."""
    site_secret = (stoker.state_dir / "keys" / "site.key").read_bytes().strip()
    return SecretColumns(Encryption(lambda: (derive_key(site_secret),)))


def test_a_signed_queue_is_renewed_by_the_previous_url(tmp_path, database_url, zaqar):
    store = Store(database_url)
    with served(tmp_path, *zaqar_flags(zaqar), database=database_url) as stoker:
        stack = stoker.create_stack("renewed", queued("one"))
        stoker.until(lambda: "url_signature" in section(stoker, stack), 60)
        queue = Lodged(store, section(stoker, stack)["queue_id"], secrets_of(stoker))
        # What a job is about to note of it would undo what is noted here.
        stoker.until(lambda: queue.is_at_rest)
        ends = queue.shorten(zaqar, stoker.project)
        old = section(stoker, stack)
        assert old["url_expires"] == ends
        for changes in ({"URL-Signature": "0" * 64}, {"URL-Expires": "2037-01-01T00:00:00"}, {"URL-Methods": "POST"}):
            assert read_signed_queue(old, **changes).status >= 400
        with own_agent(tmp_path / "agent", {"zaqar": old}) as agent:
            agent.start()
            stoker.until(lambda: agent.root.joinpath("etc", "sources.json").exists())
            # The next document that is carried there brings the new one.
            assert stoker.heat("PUT", stack, {"template": queued("one", "two")}).status == 202
            stoker.until(lambda: agent.kept["sections"]["zaqar"]["url_expires"] > ends, 60)
            stoker.await_stack(stack, "UPDATE_COMPLETE")
            assert stoker.heat("PUT", stack, {"template": queued("one", "two", "three")}).status == 202
            stoker.until(lambda: agent.lines()[-1:] == ["three"], 60)
            stoker.await_stack(stack, "UPDATE_COMPLETE")
            assert sorted(agent.lines()) == ["one", "three", "two"]
        short = signed(zaqar, queue.name, stoker.project, ["GET"], 2)
        over = {"URL-Signature": short["signature"], "URL-Expires": short["expires"]}
        stoker.until(lambda: read_signed_queue(old, **over).status >= 400)
    store.close()


def test_a_signed_queue_without_changes_is_renewed_in_time(tmp_path, zaqar):
    with served(tmp_path, *zaqar_flags(zaqar)) as stoker:
        store = Store(f"sqlite:///{stoker.state_dir}/stoker.db")
        stack = stoker.create_stack("in-time", queued("one"))
        stoker.until(lambda: stoker.heat("GET", f"{stack}/resources/one").body["resource"]["physical_resource_id"], 60)
        with store.read() as tx:
            ((id, name),) = query.rows(tx, "SELECT id, name FROM remote_objects WHERE signed_method = 'POST'")

        def waiting() -> list[int]:
            """When its jobs are due; the one that has just been done may be there yet."""
            due = "SELECT due FROM jobs WHERE kind = 'remote_object.renew' AND key = :key"
            with store.read() as tx:
                return query.column(tx, due, key=id)

        stoker.until(lambda: len(waiting()) == 1)
        (waits,) = waiting()
        until = agents_until(name, datetime.now(UTC))
        # With at least two thirds of its life to come.
        assert datetime.now(UTC) < rows.from_micros(waits) < until - 2 * AGENTS_PERIOD + timedelta(minutes=1)
        queue = Lodged(store, name, secrets_of(stoker))
        assert queue.shorten(zaqar, stoker.project) < format_time(until)
        stoker.kill9()
        at = rows.to_micros(datetime.now(UTC))
        store.write(lambda tx: query.change(tx, "UPDATE jobs SET due = :due WHERE key = :key", due=at, key=id))
        stoker.restart()
        stoker.until(lambda: queue.agents["expires"] == format_time(until), 60)
        store.close()


def left(stoker: Served) -> list[str]:
    """What Stoker knows to be there yet."""
    store = Store(f"sqlite:///{stoker.state_dir}/stoker.db")
    with store.read() as tx:
        found = query.column(tx, "SELECT project_id FROM remote_objects")
    store.close()
    return found


def test_a_server_waits_for_its_signed_url_and_reports_it(tmp_path, zaqar):
    with served(tmp_path, *zaqar_flags(zaqar)) as stoker:
        zaqar.stop()
        try:
            waiting = stoker.create_stack("waiting", queued("one"))
            dropped = stoker.create_stack("dropped", queued("one"))
            shown = stoker.heat("GET", f"{waiting}/resources/server").body["resource"]
            assert shown["resource_status"] == "INIT_COMPLETE"
            assert stoker.stack(waiting)["stack_status"] == "CREATE_IN_PROGRESS"
            assert "to sign a URL for the agent" in shown["resource_status_reason"]
            assert stoker.heat("DELETE", dropped).status == 204
            stoker.kill9()
            stoker.restart()
        finally:
            zaqar.start()
        stoker.until(lambda: "url_signature" in section(stoker, waiting), 120)
        stoker.await_stack(dropped, "DELETE_COMPLETE")
        with own_agent(tmp_path / "agent", {"zaqar": section(stoker, waiting)}) as agent:
            agent.start()
            stoker.until(lambda: stoker.stack(waiting)["stack_status"] == "CREATE_COMPLETE", 60)
        assert agent.lines() == ["one"]
        assert stoker.heat("DELETE", waiting).status == 204
        stoker.until(lambda: not left(stoker), 60)
