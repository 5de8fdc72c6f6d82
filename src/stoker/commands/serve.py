"""Serve Stoker: API, identity and agents, in one process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from stoker import settings as all_settings
from stoker.commands import clouds_yaml, login
from stoker.commands.errors import told
from stoker.model.errors import Invalid
from stoker.settings import Settings
from stoker.version import VERSION


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """A flag for every setting."""
    for name, kind, _, help in reversed(all_settings.described()):
        flag = f"--{name.replace('_', '-')}"
        if kind is bool:
            option = click.option(f"{flag}/--no-{name.replace('_', '-')}", name, default=None, help=help)
        else:
            metavar = {"int": "N", "Path": "DIR", "str": "TEXT"}[kind.__name__]
            option = click.option(flag, name, default=None, metavar=metavar, help=help)
        command = option(command)
    return command


@click.command("serve")
@_options
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="TOML file with settings.",
)
@click.option("--reset-admin-password", is_flag=True, help="Give the administrator a new password.")
def serve(config: Path | None, reset_admin_password: bool, **flags: Any) -> None:
    """Serve Stoker: API, identity and agents, in one process.

    Every option is also a variable STOKER_… and a key of the TOML file.
    """
    with told():
        settings = all_settings.load(flags, os.environ, config or all_settings.config_file(os.environ))
        _serve(settings, reset_admin_password)


def _serve(settings: Settings, reset_admin_password: bool) -> None:
    # Late: `stoker serve --help` needs none of it.
    from stoker import log
    from stoker import serve as server

    if settings.at_keystone and reset_admin_password:
        raise Invalid(
            "--reset-admin-password is for Stoker's own users: with identity_mode keystone they are Keystone's"
        )
    held = server.lock(settings)
    log.configure(settings.log_level, settings.state_dir / "logs")
    store = server.open_store(settings)
    try:
        listening = server.listen(settings)
        joined = server.join(settings, store)
        said = None
        if settings.at_keystone:
            login.note_keystone(settings.state_dir, f"{settings.identity_url}/v3")
        else:
            login.note_keystone(settings.state_dir, None)
            said = _administrator(settings, joined.services.identity, reset_admin_password)
    except BaseException:
        store.close()
        raise
    server.run(joined, listening, lambda: _ready(settings, said))
    os.close(held)


def _administrator(settings: Settings, directory: Any, reset: bool) -> dict[str, str] | None:
    """The login, when this installation knows it; made at the first start."""
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
    return login.keep(path, auth_url=auth_url, password=password)


def _ready(settings: Settings, said: dict[str, str] | None) -> None:
    click.echo(f"Stoker {VERSION} serves at {settings.public_url}")
    if settings.at_keystone:
        click.echo(f"Its users are those of Keystone at {settings.identity_url}")
    elif said is None:
        click.echo(
            "This state directory does not know the administrator's login: --reset-admin-password makes a new one."
        )
    elif settings.clouds_yaml:
        path = clouds_yaml.default_path()
        click.echo(clouds_yaml.offer(path, clouds_yaml.entry(said), settings.state_dir))
