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
