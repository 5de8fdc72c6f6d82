from tests.http.conftest import stoker  # noqa: F401 — the server of the tests of Heat's API
