from tests.http.conftest import refused, stoker  # noqa: F401 — fixtures of the tests of Heat's API
