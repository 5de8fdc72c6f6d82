"""Shared parts of the little service: errors, ids and a time."""

import uuid

TIME = "2031-05-06T07:08:09Z"


class Answer(Exception):
    """An error with Heat's body."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def new_id() -> str:
    return str(uuid.uuid4())


def deployment_of(server: str) -> str:
    """The id of the deployment that a trigger makes on a server."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, server))
