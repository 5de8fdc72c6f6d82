"""Components are complete when they are created, and applications of one process share no state."""

from __future__ import annotations

from pathlib import PurePath

from stoker import serve
from stoker.http.app import App
from stoker.model.errors import StackValidationFailed
from stoker.settings import Settings
from stoker.stacks.templates.prepare import Identity, StackRequest, prepare
from support.source_code import SERVER, sources

#: The modules that create and connect components.
COMPOSITION = (
    "serve/*.py",
    "backends/factory.py",
    "identity/keystone/authentication.py",
    "types/__init__.py",
)
#: What the HTTP and TLS code of ``serve`` sets in objects of uvicorn and Python.
PROTOCOLS = ("protocol.py", "http_server.py", "tls.py")


def test_no_component_is_changed_by_those_that_connect_it():
    modules = {PurePath(module.path.relative_to(SERVER)): module for module in sources("stoker")}
    composing = {path: module for path, module in modules.items() if any(map(path.match, COMPOSITION))}
    checked = {path: module for path, module in composing.items() if path.name not in PROTOCOLS}
    assert len(checked) > 8
    outside = {path: [pair for pair in module.assigned if pair[0] != "self"] for path, module in checked.items()}
    assert {path: pairs for path, pairs in outside.items() if pairs} == {}


def test_callbacks_are_arguments_of_constructors():
    stored = [
        (module.path, owner, attribute)
        for module in sources("stoker")
        for owner, attribute in module.assigned
        if attribute.startswith("on_")
    ]
    assert stored == []  # a private attribute, set by the constructor, begins with ``_on_``


TEMPLATE = """
heat_template_version: 2018-08-31
resources:
  config: {type: "OS::Heat::SoftwareConfig"}
  deployment:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: config}, server: s, signal_transport: TEMP_URL_SIGNAL}
"""


def test_two_applications_in_one_process_have_their_own_settings(tmp_path):
    def accepts(app: App) -> bool:
        try:
            prepare(app.engine, StackRequest(template=TEMPLATE), Identity("id", "s", "p"))
        except StackValidationFailed as error:
            assert "signal_transport: 'TEMP_URL_SIGNAL' is not an allowed value" in error.message
            return False
        return True

    apps, stores = [], []
    for name, object_store in (("with", "embedded"), ("without", "off"), ("again", "embedded")):
        settings = Settings(state_dir=tmp_path / name, public_url="http://testserver", object_store=object_store)
        settings.state_dir.mkdir()
        stores.append(serve.open_store(settings))
        apps.append(serve.create_app(settings, stores[-1], serve.load_site_secret(settings, stores[-1])))
    try:
        assert [accepts(app) for app in (*apps, *reversed(apps))] == [True, False, True, True, False, True]
    finally:
        for store in stores:
            store.close()
