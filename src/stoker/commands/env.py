"""Print the administrator's login as shell exports."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from stoker import settings as all_settings
from stoker.commands import login
from stoker.commands.errors import reported_as_click_errors


@click.command("env")
@click.option("--state-dir", type=click.Path(path_type=Path), help="The installation's state directory.")
def env(state_dir: Path | None) -> None:
    """Print the administrator's login as shell exports: eval "$(stoker env)".

    With users at a Keystone there is no such login: then it prints where that is.
    """
    with reported_as_click_errors():
        file = all_settings.config_file(os.environ)
        settings = all_settings.load({"state_dir": state_dir}, os.environ, file)
        keystone = f"{settings.identity_url}/v3" if settings.at_keystone else login.at_keystone(settings.state_dir)
        said = _common(keystone) if keystone else _administrator(settings.state_dir)
    for name, value in said.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    if keystone:
        click.echo(
            "# the users are Keystone's: log in as one of them (OS_USERNAME, OS_PASSWORD, OS_PROJECT_NAME)", err=True
        )


def _administrator(state_dir: Path) -> dict[str, str]:
    said = login.read(state_dir / "admin.json")
    return {
        **_common(said["auth_url"]),
        **({"OS_CACERT": said["cacert"]} if "cacert" in said else {}),
        "OS_USERNAME": said["username"],
        "OS_PASSWORD": said["password"],
        "OS_PROJECT_NAME": said["project_name"],
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
    }


def _common(auth_url: str) -> dict[str, str]:
    return {"OS_AUTH_URL": auth_url, "OS_IDENTITY_API_VERSION": "3", "OS_REGION_NAME": "RegionOne"}
