"""What can go wrong between a user and the service. Each message says what happened and what to do about it."""


class ClientError(Exception):
    """The base of all: its text is one sentence for the user, and nobody needs a traceback to act on it."""


class NotConfigured(ClientError):
    """No cloud is chosen, or the chosen one cannot be used as it is written."""


class Unreachable(ClientError):
    """Nothing answers at the address."""


class BadAnswer(ClientError):
    """Something answers, but not in the way an orchestration service does."""


class NoEvents(BadAnswer):
    """The service has the thing, but does not tell as a stream what happens to it."""


class Broken(ClientError):
    """A stream ended in the middle; it can be asked for again."""


class BadInput(ClientError):
    """What the user gave (a file, a parameter) cannot be used; nothing was sent."""


class Refused(ClientError):
    """The service answered with an error."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class NotFound(Refused):
    """The service knows nothing by that name in this project."""
