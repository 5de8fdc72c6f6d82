"""Print the administrator's login as shell exports."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from stoker import settings as all_settings
from stoker.commands import login
from stoker.commands.errors import told


@click.command("env")
@click.option("--state-dir", type=click.Path(path_type=Path), help="The installation's state directory.")
def env(state_dir: Path | None) -> None:
    """Print the administrator's login as shell exports: eval "$(stoker env)"."""
    with told():
        file = all_settings.config_file(os.environ)
        settings = all_settings.load({"state_dir": state_dir}, os.environ, file)
        said = login.read(settings.state_dir / "admin.json")
    for name, value in {
        "OS_AUTH_URL": said["auth_url"],
        "OS_USERNAME": said["username"],
        "OS_PASSWORD": said["password"],
        "OS_PROJECT_NAME": said["project_name"],
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_IDENTITY_API_VERSION": "3",
        "OS_REGION_NAME": "RegionOne",
    }.items():
        click.echo(f"export {name}={shlex.quote(value)}")
