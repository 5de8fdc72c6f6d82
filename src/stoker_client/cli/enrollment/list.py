"""List the enrollments of the project, without their tokens."""

from collections.abc import Mapping
from typing import Any

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session

COLUMNS = ("id", "status", "uses", "limit", "labels", "expires_at")
WIDE = ("server_id", "name_from", "names", "approval", "rerun", "created_by", "created_at")


@click.command()
@list_options()
@click.pass_obj
def command(session: Session, output: Output) -> None:
    enrollments = session.client.enrollments.all()
    emit_list(output, enrollments, COLUMNS, wide=WIDE, order="created_at", cells=lambda row: {"labels": _labels(row)})


def _labels(enrollment: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted((enrollment.get("labels") or {}).items()))
