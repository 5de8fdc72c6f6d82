"""``stoker db sweep``: what nobody needs goes, what somebody needs stays."""

from __future__ import annotations

from stoker.store.open import Store
from support import query
from support.backends import RESULT, ask, greeting, queues_of, runs, swift_flags, until_document, zaqar_flags
from support.server import served
from support.templates import template

NOTHING = "0 orphans removed"


def lose(url, name):
    """Have a stack be no more without anything being removed, as a database put back from a copy has it."""
    store = Store(url)
    stack = "(SELECT id FROM stacks WHERE name = :name)"
    for table in ("resources", "servers"):
        lost = f"DELETE FROM {table} WHERE stack_id = {stack}"
        store.write(lambda tx, lost=lost: query.change(tx, lost, name=name))
    store.write(lambda tx: query.change(tx, "UPDATE stacks SET deleted_at = 1 WHERE name = :name", name=name))
    store.close()


def sweep(stoker, flags, *words, check=True):
    """Run the command with these options of the server as settings, and return its lines."""
    names = (f"STOKER_{flag.removeprefix('--').replace('-', '_').upper()}" for flag in flags[::2])
    environment = {**stoker.environment, **dict(zip(names, flags[1::2], strict=True))}
    words = ("db", "sweep", "--state-dir", str(stoker.state_dir), *words)
    done = stoker.run(*words, check=check, environment=environment)
    return [line for line in (done.stderr + done.stdout).splitlines() if not line.startswith("Database: ")]


def test_orphans_of_the_embedded_services_are_listed_and_removed(tmp_path, database_url):
    flags = ("--database", database_url)
    with served(tmp_path, *flags) as stoker:
        for name in ("kept", "lost"):
            for metadata, signal in (("POLL_TEMP_URL", "TEMP_URL_SIGNAL"), ("ZAQAR_MESSAGE", "ZAQAR_SIGNAL")):
                stoker.create_stack(f"{name}-{metadata[:1].lower()}", greeting(metadata, signal))
        headers = {"X-Auth-Token": stoker.token, "Client-ID": "3381af92-2b9e-11e3-b191-71861300734c"}
        store = f"/object-store/v1/AUTH_{stoker.project}"
        assert stoker.request("PUT", f"{store}/mine", headers=headers).status == 201
        assert stoker.request("PUT", "/messaging/v2/queues/mine", headers=headers).status == 201

        def there():
            containers = stoker.request("GET", f"{store}?format=json", headers=headers).body
            queues = stoker.request("GET", "/messaging/v2/queues", headers=headers).body["queues"]
            return len(containers), len(queues)

        assert sweep(stoker, flags) == [NOTHING]
        assert there() == (5, 5)
        lose(database_url, "lost-p")
        lose(database_url, "lost-z")
        said = sweep(stoker, flags, "--dry-run")
        assert said[-1] == "4 orphans would be removed"
        assert there() == (5, 5)
        assert sweep(stoker, flags)[-1] == "4 orphans removed"
        assert there() == (3, 3)
        assert sweep(stoker, flags) == [NOTHING]


def test_orphans_in_external_services_are_listed_and_removed(tmp_path, database_url, swift, zaqar):
    flags = ("--database", database_url, *swift_flags(swift, tmp_path), *zaqar_flags(zaqar))
    with served(tmp_path, *flags) as stoker:
        urls = {}
        for name in ("kept", "lost", "late"):
            stack = stoker.create_stack(f"{name}-o", greeting("POLL_TEMP_URL", "TEMP_URL_SIGNAL"))
            document = stoker.outputs(stack)["agent"]["request"]["metadata_url"]
            (run,) = until_document(stoker, document, "world")
            urls[name] = (document, run["deploy_signal_id"])
            if name == "late":
                assert stoker.heat("DELETE", stack).status == 204
                stoker.until(lambda url=document: ask("GET", url).status == 404)
                # An agent that does not know yet.
                assert ask("PUT", run["deploy_signal_id"], RESULT).status == 201
            else:
                stoker.create_stack(f"{name}-q", greeting("ZAQAR_MESSAGE", "ZAQAR_SIGNAL"))
        handle = {"handle": {"type": "OS::Heat::SwiftSignalHandle"}}
        shown = {"url": {"value": {"get_resource": "handle"}}}
        stack = stoker.create_stack("late-s", template(handle, outputs=shown))
        signal = stoker.outputs(stack)["url"]
        assert ask("PUT", signal, {}).status == 201
        assert stoker.heat("DELETE", stack).status == 204
        stoker.until(lambda: ask("HEAD", signal).status == 404)
        for _ in range(2):  # one is a version of the other
            assert ask("PUT", signal, {}).status == 201
        stoker.until(lambda: len(queues_of(zaqar, stoker.project)) == 4)
        lose(database_url, "lost-o")
        lose(database_url, "lost-q")
        assert sweep(stoker, flags, "--dry-run")[-1] == "6 orphans would be removed"
        assert len(queues_of(zaqar, stoker.project)) == 4
        assert sweep(stoker, flags)[-1] == "6 orphans removed"
        assert ask("HEAD", signal).status == 404
        assert len(queues_of(zaqar, stoker.project)) == 2
        assert ask("GET", urls["lost"][0]).status == ask("HEAD", urls["late"][1]).status == 404
        assert runs(ask("GET", urls["kept"][0]).body)
        assert sweep(stoker, flags) == [NOTHING]


def test_an_orphan_that_cannot_be_removed_is_reported_and_stays_listed(tmp_path, database_url, zaqar):
    flags = ("--database", database_url, *zaqar_flags(zaqar))
    with served(tmp_path, *flags) as stoker:
        stoker.create_stack("lost", greeting("ZAQAR_MESSAGE", "ZAQAR_SIGNAL"))
        stoker.until(lambda: len(queues_of(zaqar, stoker.project)) == 2)
        lose(database_url, "lost")
        said = sweep(stoker, (*flags[:2], "--messaging", "http://127.0.0.1:9"), check=False)
        assert sum("not removed" in line for line in said) == 2
        assert sweep(stoker, flags)[-1] == "2 orphans removed"
        assert queues_of(zaqar, stoker.project) == set()
