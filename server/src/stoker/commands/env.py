"""Print the administrator's login as shell exports."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from stoker import settings as all_settings
from stoker.commands import login, reported_as_click_errors


@click.command("env")
@click.option("--state-dir", type=click.Path(path_type=Path), help="The installation's state directory.")
def env(state_dir: Path | None) -> None:
    """Print the administrator's login as shell exports: eval "$(stoker env)".

    If a Keystone manages the users, the command prints its URL only.
    """
    with reported_as_click_errors():
        file = all_settings.config_file(os.environ)
        settings = all_settings.load({"state_dir": state_dir}, os.environ, file)
        keystone = f"{settings.identity_url}/v3" if settings.at_keystone else login.at_keystone(settings.state_dir)
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

    ``keystone`` is the URL of the Keystone that manages its users. Raises as ``login.read``.
    """
    if keystone:
        return _common(keystone)
    admin = login.read(state_dir / "admin.json")
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
