"""The examples in the docstrings of extension points work."""

from __future__ import annotations

import inspect
import textwrap
import threading
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner

import stoker_client.cli
from stoker import hot, types
from stoker.backends import provider, remote_object_controller
from stoker.backends.provider import Provider, ProviderSite
from stoker.hot import functions, syntaxes
from stoker.http import access, api
from stoker.model.deployment import Owner
from stoker.model.errors import Invalid
from stoker.resources import base as resource_base
from stoker.servers import compute
from stoker.settings import Settings
from stoker.store.tx import TxCallbacks
from stoker.transports import base as transport_base
from stoker.work import Work
from stoker_agent import hook_contract
from stoker_agent.hook_contract import HookRun
from stoker_agent.transports import base as source_base
from support.in_process import Inside
from support.stacks import site, world
from support.templates import define, template
from support.work import ManualWork


def example_of(documented: Any) -> str:
    """Return the last indented block of the docstring."""
    blocks: list[list[str]] = [[]]
    for line in (inspect.getdoc(documented) or "").splitlines():
        if line and not line.startswith("    "):
            blocks.append([])
        else:
            blocks[-1].append(line)
    example = [block for block in blocks if any(block)][-1]
    return textwrap.dedent("\n".join(example)).strip()


def names_of(documented: Any, **more: Any) -> dict[str, Any]:
    """Execute the example with the names of its module and with ``more``. Return all names."""
    module = documented if inspect.ismodule(documented) else inspect.getmodule(documented)
    names = {**vars(module), **more}
    # Without the __future__ imports of this file, which would change the example's annotations.
    exec(compile(example_of(documented), f"the example of {documented.__name__}", "exec", dont_inherit=True), names)
    return names


def test_resource_type(store, monkeypatch):
    made = names_of(resource_base)["Shout"]
    point = SimpleNamespace(load=lambda: made)
    monkeypatch.setattr(types, "entry_points", lambda group: [point])
    heat = world(store)
    stack = heat.create(
        template(
            {"loud": define("Example::Shout", text="hello")},
            outputs={"shouted": {"value": {"get_attr": ["loud", "shouted"]}}},
        )
    )
    assert heat.outputs(stack) == {"shouted": "HELLO"}


def test_provider(store, monkeypatch, tmp_path):
    class Greeter:
        def __init__(self, store):
            self.store = store

        def greet(self, args):
            greeted.append(args["name"])
            is_done.set()

    greeted, is_done = [], threading.Event()
    create = names_of(provider, Greeter=Greeter)["create"]
    monkeypatch.setattr(provider, "entry_points", lambda group: [SimpleNamespace(load=lambda: create, name="example")])
    inside = Inside(tmp_path, store)
    work = inside.services.work
    try:
        greeter = inside.services.engine.env.provider.offered[Greeter]
        assert greeter.store is store
        work.start()
        store.write(lambda tx: work.defer(tx, "example.greet", "ann", {"name": "ann"}))
        assert is_done.wait(60)
    finally:
        work.stop()
        inside.close()
    assert greeted == ["ann"]


def test_two_providers_or_a_cloud_without_a_provider_are_refused(monkeypatch, tmp_path):
    def load(cloud: str, *names: str) -> Any:
        points = [SimpleNamespace(load=lambda: lambda _site: Provider(), name=name) for name in names]
        monkeypatch.setattr(provider, "entry_points", lambda group: points)
        settings = Settings(state_dir=tmp_path, cloud=cloud)
        return provider.load(ProviderSite(settings=settings, store=None, work=None, secret=b""))

    assert load("", "one") == load("") == Provider()
    with pytest.raises(Invalid, match="one provider can serve a site, not all of one, two"):
        load("", "one", "two")
    with pytest.raises(Invalid, match="cloud is set, but no provider is installed"):
        load("peer")


def test_transport(store):
    (transport,) = names_of(transport_base)["TRANSPORTS"]
    assert isinstance(transport, transport_base.SignalTransport)
    target = transport_base.TransportTarget(
        resource_id=str(uuid4()), resource_name="r", name="n", stack_id=str(uuid4()), stack_name="s", project_id="p"
    )
    platform = site(store, ManualWork())
    inputs = store.write(lambda tx: transport.signal_inputs(tx, platform, target))
    assert inputs["deploy_signal_verb"] == "POST"
    assert target.stack_id in inputs["deploy_signal_id"]


def test_template_function():
    function = names_of(functions.base)["Upper"]()
    assert (function.name, function.since, function.evaluate("loud", None)) == ("upper", "2021-04-16", "LOUD")
    assert function.description == "``{upper: text}``: the text in upper case."


def test_template_syntax(monkeypatch):
    syntax = names_of(syntaxes)["SYNTAX"]
    caches = (syntaxes.load, syntaxes.versions, functions.all_functions, functions.call_names, functions.replaced)

    def forget():
        for cached in (*caches, functions.evaluators):
            cached.cache_clear()

    monkeypatch.setattr(syntaxes, "entry_points", lambda group: [SimpleNamespace(load=lambda: syntax)])
    forget()
    try:
        machine = {"type": "OS::Heat::None"}
        parsed = hot.parse({"machines_version": "1999-01-01", "machines": {"a": machine}})
        assert list(parsed.resources) == ["a"]
        text = "machines_version: 1999-01-01\nmachines:\n  a:\n    typ: 1\n"
        with pytest.raises(Invalid, match=r"\(line 4\)"):
            hot.parse(text)
    finally:
        monkeypatch.undo()
        forget()


def test_hook(tmp_path):
    apply = names_of(hook_contract)["apply"]
    entry = {
        "id": "a",
        "config": 'printf "$who" > "$heat_outputs_path.greeting"',
        "inputs": [{"name": "who", "value": "me"}],
    }
    result = apply(HookRun(entry, tmp_path, tmp_path, tmp_path / "out"))
    assert (result.code, result.values, result.changed) == (0, {"length": len(str(entry["config"]))}, True)
    assert (tmp_path / "out.greeting").read_text() == "me"


def test_source_of_the_agent(tmp_path):
    path = tmp_path / "document.json"
    path.write_text('{"deployments": [{"id": "a"}]}')
    source = names_of(source_base.Source)["File"]({"path": str(path)}, source_base.Making())
    assert source.fetch(0).entries == [{"id": "a"}]
    assert source.fetch(0) is None
    source.reset()
    assert source.fetch(0) is not None
    source.close()


def test_backend_driver(tmp_path):
    driver = names_of(remote_object_controller.BackendDriver)["Files"](tmp_path / "objects")
    desired = SimpleNamespace(name="a", body="text")
    driver.prepare()
    for _ in range(2):
        assert driver.apply(desired) == {}
    assert [list(page) for page in driver.names()] == [["a"]]
    for _ in range(2):
        driver.remove(desired)
    assert [list(page) for page in driver.names()] == [[]]
    assert methods_of(remote_object_controller.BackendDriver) <= methods_of(type(driver))


def test_server_provider(store):
    started: list[str] = []
    store.callbacks.bind(TxCallbacks(resource_woken=lambda _tx, id, _wakes: started.append(id)))
    provider = names_of(compute.Compute, Owner=Owner)["Pool"](["192.0.2.1"])
    store.write(lambda tx: provider.create(tx, server_id="s", project_id="p", name="n", owner=None))
    assert (started, provider.address("s")) == (["s"], "192.0.2.1")
    store.write(lambda tx: provider.delete(tx, "s"))
    assert methods_of(compute.Compute) <= methods_of(type(provider))


@pytest.mark.slow
def test_job_queue(store):
    deleted, is_done = [], threading.Event()

    def delete_user(user_id: str) -> None:
        deleted.append(user_id)
        is_done.set()

    keystone = SimpleNamespace(delete_user=delete_user)
    work = names_of(Work, store=store, keystone=keystone, user_id="ann")["work"]
    try:
        assert is_done.wait(60)
    finally:
        work.stop()
    assert deleted == ["ann"]


def test_rest_call():
    names = {**vars(api), **vars(access), "show": lambda request: None}
    route = eval(example_of(api.Route), names)
    assert (route.verb, route.path) == ("GET", "/v1/{project}/stacks/{name}")


def test_access_rule():
    rule = names_of(access.Access, Access=access.Access, TOKEN=access.TOKEN)["any_token"]
    assert inspect.iscoroutinefunction(rule.authenticate)


def test_command():
    done = CliRunner().invoke(names_of(stoker_client.cli)["hello"], ["web1"])
    assert (done.exit_code, done.output) == (0, "Hello, web1.\n")


def methods_of(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}
