"""The end of the server's certificate, for /healthz and the metrics."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from cryptography import x509

from stoker.model.errors import Unavailable
from stoker.settings import Settings

#: A certificate should be renewed when a tenth of its lifetime remains, or this time if that is less.
_LONGEST_NOTICE = timedelta(days=14)
_FORMAT = "%Y-%m-%d %H:%M UTC"


class _Validity(NamedTuple):
    start: datetime
    end: datetime


class CertificateExpiry:
    """Reads the first certificate of the setting ``tls_cert`` again when the file changes."""

    def __init__(self, settings: Settings, now: Callable[[], datetime]) -> None:
        self.chain = settings.tls_cert if settings.has_tls else None
        self._now = now
        self._signature: tuple[int, int] | None = None
        self._validity: _Validity | None = None

    def end(self) -> datetime | None:
        """Return the end of the certificate; None without TLS or while the file cannot be read."""
        validity = self._read()
        return None if validity is None else validity.end

    def check(self) -> None:
        """Raise Unavailable if the certificate has expired, or will soon."""
        validity = self._read()
        if validity is None:
            return
        left, end = validity.end - self._now(), validity.end.strftime(_FORMAT)
        if left <= timedelta():
            raise Unavailable(f"the certificate in {self.chain} has expired ({end}): clients refuse it, renew it")
        if left < min((validity.end - validity.start) / 10, _LONGEST_NOTICE):
            raise Unavailable(f"the certificate in {self.chain} expires soon ({end}): renew it")

    def _read(self) -> _Validity | None:
        if self.chain is None:
            return None
        try:
            state = self.chain.stat()
            signature = (state.st_ino, state.st_mtime_ns)
            if signature != self._signature:
                certificate = x509.load_pem_x509_certificates(self.chain.read_bytes())[0]
                self._validity = _Validity(certificate.not_valid_before_utc, certificate.not_valid_after_utc)
                self._signature = signature
        except (OSError, ValueError):
            return self._validity  # the handshake that needs the file logs the error
        return self._validity
