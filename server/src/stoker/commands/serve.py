"""Serve Stoker: API, identity and agents."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any

import click

from stoker import VERSION
from stoker import settings as all_settings
from stoker.addresses import is_loopback_url
from stoker.commands import login, reported_as_click_errors
from stoker.model.errors import Invalid, Unavailable
from stoker.settings import Settings

if TYPE_CHECKING:
    from stoker.http.app import App
    from stoker.http.metrics import WorkerMetrics
    from stoker.serve.tls import Tls

#: Names without documentation that the server's HTTP layer and its driver of PostgreSQL use, by module. A release of
#: the library may rename them at any time.
INTERNALS: dict[str, tuple[str, ...]] = {
    "uvicorn.protocols.http.httptools_impl": (
        "STATUS_LINE",
        "HttpToolsProtocol._start_asgi_task",
        "HttpToolsProtocol.on_body",
        "HttpToolsProtocol.on_header",
        "HttpToolsProtocol.on_headers_complete",
        "HttpToolsProtocol.on_message_begin",
        "HttpToolsProtocol.on_message_complete",
        "HttpToolsProtocol.on_response_complete",
        "HttpToolsProtocol.on_url",
        "HttpToolsProtocol.pause_writing",
        "HttpToolsProtocol.resume_writing",
    ),
    "uvicorn.protocols.http.flow_control": ("FlowControl.resume_reading",),
    "uvicorn": ("Server.on_tick", "Server.shutdown"),
    "psycopg.adapt": (
        "PyFormat.AUTO",
        "Transformer.dump_sequence",
        "Transformer.load_rows",
        "Transformer.set_pgresult",
    ),
    "psycopg.pq": (
        "PGconn.consume_input",
        "PGconn.enter_pipeline_mode",
        "PGconn.exit_pipeline_mode",
        "PGconn.flush",
        "PGconn.get_result",
        "PGconn.is_busy",
        "PGconn.pipeline_sync",
        "PGconn.send_prepare",
        "PGconn.send_query_params",
        "PGconn.send_query_prepared",
    ),
}


def check_internals() -> None:
    """
    Check that the installed libraries have the internals that the server uses.

    Raises Unavailable, which names what is missing and the remedy, so that the server does not fail at a later request.
    """
    missing = [f"{module}.{name}" for module, names in INTERNALS.items() for name in names if not _has(module, name)]
    if missing:
        libraries = sorted({name.partition(".")[0] for name in missing})
        installed = ", ".join(f"{library} {version(library)}" for library in libraries)
        raise Unavailable(
            f"the server does not work with {installed}: {', '.join(missing)} is missing; install the versions in"
            " constraints.txt of Stoker's source (make does)"
        )


def _has(module: str, name: str) -> bool:
    try:
        value: object = import_module(module)
    except ImportError:
        return False
    for part in name.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each setting."""
    for setting in reversed(all_settings.describe_settings()):
        help, word = _with_default(setting.help, setting.default), setting.name.replace("_", "-")
        if setting.kind is bool:
            option = click.option(f"--{word}/--no-{word}", setting.name, default=None, help=help)
        else:
            metavar = {"int": "N", "Path": "PATH", "str": "TEXT"}[setting.kind.__name__]
            # A secret is not shown, because it must not be on a command line. A message says what to use instead.
            option = click.option(
                f"--{word}", setting.name, default=None, metavar=metavar, help=help, hidden=setting.is_secret
            )
        command = option(command)
    return command


def _with_default(help: str, default: Any) -> str:
    if default in ("", Path()) or "(default:" in help:
        return help
    value = ("yes" if default else "no") if isinstance(default, bool) else default
    return f"{help.removesuffix('.')} (default: {value})."


class ServeCommand(click.Command):
    """The command, whose help lists the settings in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group, then the options that are no settings."""
        records = {param.name: record for param in self.get_params(ctx) if (record := param.get_help_record(ctx))}
        shown = [setting for setting in all_settings.describe_settings() if not setting.is_secret]
        for title, settings in groupby(shown, key=lambda setting: setting.group):
            with formatter.section(title):
                formatter.write_dl([records.pop(setting.name) for setting in settings])
        with formatter.section("Options"):
            formatter.write_dl(list(records.values()))


@click.command("serve", cls=ServeCommand)
@_options
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="TOML file with settings.",
)
@click.option("--reset-admin-password", is_flag=True, help="Give the administrator a new password.")
@click.option(
    "--accept-new-secret",
    is_flag=True,
    help="Accept another site secret for this database, once, because the former one is lost: you must enroll every"
    " agent again, and all signed URLs and EC2 keys become invalid.",
)
def serve(config: Path | None, reset_admin_password: bool, accept_new_secret: bool, **flags: Any) -> None:
    """Serve Stoker: API, identity and agents.

    Every option is also a variable STOKER_… and a key of the TOML file.
    """
    for warning in all_settings.warnings(os.environ):
        click.echo(f"Warning: {warning}", err=True)
    with reported_as_click_errors():
        settings = all_settings.load(flags, os.environ, config or all_settings.config_file(os.environ))
        _serve(settings, reset_admin_password, accept_new_secret)


def _serve(settings: Settings, reset_admin_password: bool, accept_new_secret: bool) -> None:
    # Imported late, because `stoker serve --help` does not need it.
    gc.disable()  # it would search the new modules again and again, in a fifth of the time of the imports
    check_internals()
    from stoker import log
    from stoker import serve as server
    from stoker.http.metrics import open_folder

    gc.enable()
    if settings.at_keystone and reset_admin_password:
        raise Invalid(
            "--reset-admin-password is for Stoker's own users: with identity_mode keystone they are Keystone's"
        )
    server.check_exposure(settings)
    lock = server.lock(settings)
    # Two processes cannot rotate one file.
    log.configure(settings.log_level, settings.state_dir / "logs" if settings.workers == 1 else None)
    app, tls = _open_site(settings, accept_new_secret=accept_new_secret)
    try:
        admin_login = None
        if settings.at_keystone:
            login.note_keystone(settings.state_dir, f"{settings.identity_url}/v3")
        else:
            login.note_keystone(settings.state_dir, None)
            ca_file = login.find_public_ca(settings.tls_ca, tls.ca_file)
            admin_login = _administrator(settings, app.identity, reset_admin_password, ca_file)
        sockets = server.listen(settings)
    except BaseException:
        app.store.close()
        raise
    ready = partial(_ready, settings, admin_login, tls.problem)
    if settings.workers == 1:
        server.run(app, sockets[0], ready, tls=tls.context)
    else:
        # Workers open the database themselves: a connection must not be in use by two processes.
        app.store.close()
        folder = open_folder(settings.state_dir)
        server.Supervisor(sockets, partial(_serve_worker, settings, folder)).run(ready)
    os.close(lock)


def _serve_worker(settings: Settings, folder: Path, number: int, listening: socket, ready: Callable[[], None]) -> None:
    """Serve as one of several worker processes. The supervisor has checked and prepared everything."""
    from stoker import log
    from stoker import serve as server
    from stoker.http.metrics import WorkerMetrics

    log.configure(settings.log_level, None, worker=number)
    app, tls = _open_site(settings, WorkerMetrics(number, settings.workers, folder))
    server.run(app, listening, ready, tls=tls.context)


def _open_site(
    settings: Settings, worker: WorkerMetrics | None = None, *, accept_new_secret: bool = False
) -> tuple[App, Tls]:
    """Open the database and create the site; see ``serve.create_app``."""
    from stoker import serve as server

    store = server.open_store(settings, server.key_source(settings))
    try:
        secret = server.load_site_secret(settings, store, replace_fingerprint=accept_new_secret)
        tls = server.open_tls(settings)
        return server.create_app(settings, store, secret, ca_file=tls.ca_file, worker=worker), tls
    except BaseException:
        store.close()
        raise


def _administrator(settings: Settings, directory: Any, reset: bool, ca_file: Path | None) -> dict[str, str] | None:
    """Return the administrator's login, or None if the state directory lacks it. The first start creates it."""
    from stoker import serve as server

    path = server.admin_file(settings.state_dir)
    auth_url = f"{settings.public_url}/identity/v3"
    password = directory.first_start()
    if password is None and reset:
        password = directory.reset_admin_password()
    if password is None:
        if not path.exists():
            return None
        password = login.read(path)["password"]
    return login.store(path, auth_url=auth_url, password=password, ca_file=ca_file)


def _ready(settings: Settings, admin_login: dict[str, str] | None, tls_problem: str | None) -> None:
    click.echo(f"Stoker {VERSION} serves at {settings.public_url}")
    if is_loopback_url(settings.public_url):
        click.echo(
            "Only this machine can reach it there; see 'Other machines' in docs/operations.md to serve other machines."
        )
    elif not settings.public_url.startswith("https://"):
        click.echo(
            "It has no TLS (--insecure-http): everyone on the network path can read passwords, tokens and scripts."
        )
    if tls_problem:
        click.echo(
            f"Clients will not trust its certificate: {tls_problem}. --tls-ca FILE passes the CA's certificate to them;"
            " --public-url names a host of the certificate."
        )
    if settings.at_keystone:
        click.echo(f"Its users are those of Keystone at {settings.identity_url}")
    elif admin_login is None:
        click.echo(
            "This state directory does not have the administrator's login: --reset-admin-password creates a new one."
        )
    elif settings.clouds_yaml:
        path = login.clouds_yaml_path()
        click.echo(login.offer_cloud_entry(path, login.cloud_entry(admin_login), settings.state_dir))
