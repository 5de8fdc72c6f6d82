"""The relay's certificate, which is read again when its files change."""

from __future__ import annotations

import ssl
from pathlib import Path

import structlog

from stoker_relay.settings import Unusable

_log = structlog.get_logger("stoker_relay")


class Certificate:
    """
    A certificate chain and its key, as PEM files.

    Each handshake uses the current content of the files, so a renewed certificate ends no connection. If the files
    become unusable, the previous certificate stays in use. Raises Unusable if they are unusable at the start.
    """

    def __init__(self, chain: Path, key: Path) -> None:
        self._files = (chain, key)
        self._signature = self._read_signature()
        try:
            #: The context for the listener, whose handshakes switch to the current certificate.
            self.context = self._current = self._load()
        except (OSError, ssl.SSLError, ValueError) as error:
            raise Unusable(f"cannot use --tls-cert {chain} with --tls-key {key}: {error}") from None
        self.context.sni_callback = self._on_handshake

    def _on_handshake(self, connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        signature = self._read_signature()
        if signature != self._signature:
            self._signature = signature
            try:
                self._current = self._load()
            except (OSError, ssl.SSLError, ValueError) as error:
                _log.error("tls.reload_failed", certificate=str(self._files[0]), error=str(error))
            else:
                _log.info("tls.reloaded", certificate=str(self._files[0]))
        connection.context = self._current

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(*self._files, password=_refuse_encrypted)
        return context

    def _read_signature(self) -> tuple[tuple[int, int, int], ...]:
        """Return what differs whenever the content differs; empty while a file is missing during its replacement."""
        try:
            states = [path.stat() for path in self._files]
        except OSError:
            return ()
        return tuple((state.st_ino, state.st_size, state.st_mtime_ns) for state in states)


def _refuse_encrypted() -> str:
    raise ValueError("the key is encrypted: use one without a pass phrase")
