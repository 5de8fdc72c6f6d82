"""
Print the login of an installation, for shells.

The login is that of the administrator, or the URL of a Keystone. It is stored in the state directory, and as an entry
in clouds.yaml, the file that OpenStack's clients read.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from stoker import private_file
from stoker import settings as all_settings
from stoker.commands import reported_as_click_errors
from stoker.model.errors import EntityNotFound, Invalid


def store(path: Path, *, auth_url: str, password: str, ca_file: Path | None = None) -> dict[str, str]:
    """
    Store the administrator's login and return it.

    ``ca_file`` verifies ``auth_url``; None if the clients' systems trust the CA already.
    """
    login = {"auth_url": auth_url, "username": "admin", "password": password, "project_name": "default"}
    if ca_file is not None:
        login["cacert"] = str(ca_file)
    private_file.replace(path, json.dumps(login, indent=1).encode())
    return login


def find_public_ca(tls_ca: Path, ca_file: Path | None) -> Path | None:
    """
    Return the file with the CA's certificates for all users of this machine.

    ``ca_file`` has the same certificates as ``tls_ca``, but the state directory is private.
    """
    try:
        is_public = tls_ca != Path() and tls_ca.stat().st_mode & 0o004 != 0
        is_public = is_public and all(folder.stat().st_mode & 0o001 for folder in tls_ca.absolute().parents)
    except OSError:
        return ca_file
    return tls_ca if is_public else ca_file


def at_keystone(state_dir: Path) -> str | None:
    """Return the URL of the Keystone that manages the users, or None if Stoker manages them."""
    try:
        return _note(state_dir).read_text().strip()
    except OSError:
        return None


def note_keystone(state_dir: Path, auth_url: str | None) -> None:
    """Store the Keystone's URL for ``stoker env``, which does not know the flags of ``stoker serve``."""
    if auth_url is None:
        _note(state_dir).unlink(missing_ok=True)
    else:
        _note(state_dir).write_text(f"{auth_url}\n")


def _note(state_dir: Path) -> Path:
    return state_dir / "keystone.url"


def read(path: Path) -> dict[str, str]:
    """Return the administrator's login. Raises EntityNotFound if there is none, and Invalid for a damaged file."""
    try:
        login: dict[str, str] = json.loads(path.read_text())  # noqa: TID251 — a file of the user
    except FileNotFoundError:
        raise EntityNotFound(
            f"there is no login in {path.parent}: start `stoker serve` with this state directory once"
            " (with --reset-admin-password if its database is older)"
        ) from None
    except (OSError, ValueError) as error:
        raise Invalid(f"cannot read {path}: {error}") from None
    names = ("auth_url", "username", "password", "project_name")
    if not isinstance(login, dict) or not all(isinstance(login.get(name), str) for name in names):
        raise Invalid(f"cannot read {path}: it is no login; `stoker serve --reset-admin-password` writes a new one")
    return login


CLOUD = "stoker"


def clouds_yaml_path() -> Path:
    """The user's own file (XDG config home)."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return home / "openstack" / "clouds.yaml"


def cloud_entry(login: Mapping[str, str]) -> dict[str, Any]:
    """Return the entry for a login. ``login`` is the content of ``admin.json``."""
    verification = {"cacert": login["cacert"]} if "cacert" in login else {}
    return {
        "auth": {
            "auth_url": login["auth_url"],
            "username": login["username"],
            "password": login["password"],
            "project_name": login["project_name"],
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        },
        "region_name": "RegionOne",
        "identity_api_version": "3",
        **verification,
    }


def offer_cloud_entry(path: Path, content: Mapping[str, Any], state_dir: Path) -> str:
    """
    Write the file with the entry, unless it exists. Returns a sentence on the result.

    A file that Stoker wrote for ``state_dir``, and to which nobody has added another cloud, is written again.
    """
    marker = f"# written by stoker serve for {state_dir}\n"
    try:
        before = path.read_bytes().decode() if path.exists() else marker
        document = yaml.safe_load(before) or {"clouds": {CLOUD: None}}
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return f"left {path} alone: it cannot be read as YAML; `stoker env` prints the login"
    clouds = document.get("clouds") if isinstance(document, dict) else None
    entries = clouds if isinstance(clouds, dict) else {}
    if entries.get(CLOUD) == content:
        return f"{path} has the entry '{CLOUD}'"
    if not before.startswith(marker) or [*document, *entries] != ["clouds", CLOUD]:
        return f"left {path} alone, because it exists; `stoker env` prints the login"
    try:
        text = yaml.safe_dump({"clouds": {CLOUD: dict(content)}}, sort_keys=False)
        private_file.replace(path, f"{marker}{text}".encode())
    except OSError as error:
        return f"could not write {path}: {error.strerror}; `stoker env` prints the login"
    return f"{path} has the entry '{CLOUD}': export OS_CLOUD={CLOUD}"


@click.command("env")
@click.option("--state-dir", type=click.Path(path_type=Path), help="The installation's state directory.")
def env(state_dir: Path | None) -> None:
    """Print the administrator's login as shell exports: eval "$(stoker env)".

    If a Keystone manages the users, the command prints its URL only.
    """
    with reported_as_click_errors():
        file = all_settings.config_file(os.environ)
        settings = all_settings.load({"state_dir": state_dir}, os.environ, file)
        keystone = f"{settings.identity_url}/v3" if settings.at_keystone else at_keystone(settings.state_dir)
        variables = read_variables(settings.state_dir, keystone)
    for name, value in variables.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    if keystone:
        click.echo(
            "# the users are Keystone's: log in as one of them (OS_USERNAME, OS_PASSWORD, OS_PROJECT_NAME)", err=True
        )


def read_variables(state_dir: Path, keystone: str | None) -> dict[str, str]:
    """
    Return the variables for clients of an installation.

    ``keystone`` is the URL of the Keystone that manages its users. Raises as ``read``.
    """
    if keystone:
        return _common(keystone)
    admin = read(state_dir / "admin.json")
    return {
        **_common(admin["auth_url"]),
        **({"OS_CACERT": admin["cacert"]} if "cacert" in admin else {}),
        "OS_USERNAME": admin["username"],
        "OS_PASSWORD": admin["password"],
        "OS_PROJECT_NAME": admin["project_name"],
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
    }


def _common(auth_url: str) -> dict[str, str]:
    return {"OS_AUTH_URL": auth_url, "OS_IDENTITY_API_VERSION": "3", "OS_REGION_NAME": "RegionOne"}
