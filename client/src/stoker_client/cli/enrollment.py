"""Enrollments: tokens with which machines become servers."""

from stoker_client.cli._lazy import Group
from stoker_client.cli._nouns import Noun
from stoker_client.cli._output import join_labels

_NOUN = Noun("enrollment", lambda client: client.enrollments)
command = Group(
    commands=[
        _NOUN.list(
            "List the enrollments of the project, without their tokens.",
            ("id", "status", "uses", "limit", "labels", "expires_at"),
            wide=("server_id", "name_from", "names", "approval", "rerun", "created_by", "created_at"),
            order="created_at",
            cells=lambda enrollment: {"labels": join_labels(enrollment)},
        ),
        _NOUN.delete("Revoke tokens; servers that were enrolled with them keep their keys."),
    ]
)
