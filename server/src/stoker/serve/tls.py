"""
TLS: the server's certificate, reloaded when its files change, the CA certificates that clients need, and the check that
no secrets go unencrypted.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import structlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from stoker.addresses import is_loopback
from stoker.model.errors import Invalid
from stoker.settings import Settings


def check_exposure(settings: Settings) -> None:
    """
    Raises Invalid for settings that expose secrets.

    This is a listener beyond loopback that either has local servers or would transmit secrets unencrypted.
    """
    host = settings.host
    if is_loopback(host):
        return
    if settings.local_servers_unsafe:
        raise Invalid(
            "scripts on local servers can read the site's secret: with --local-servers-unsafe --host must be a loopback"
            f" address, not {host}"
        )
    if not (settings.has_tls or settings.insecure_http or settings.public_url.startswith("https://")):
        raise Invalid(
            f"other machines reach --host {host}, and passwords, tokens and scripts would go unencrypted: give"
            " --tls-cert and --tls-key; or declare the TLS proxy in front with --public-url https://…; or accept it"
            " with --insecure-http"
        )


_log = structlog.get_logger("stoker.tls")

#: Inode, size and modification time of each file: differs whenever the content differs.
_Signature = tuple[tuple[int, int, int], ...]


class Certificate:
    """
    A certificate chain and its key, as PEM files.

    Each handshake checks whether the files have changed and uses their current content, so a renewed certificate needs
    no restart and ends no connection. If the files become unusable, the previous certificate stays in use and the error
    is logged once. Raises Invalid if the files are unusable at start-up.
    """

    def __init__(self, chain: Path, key: Path) -> None:
        self._chain = chain
        self._key = key
        self._signature = self._read_signature()
        try:
            #: The context for the listener; its SNI callback switches each handshake to the current certificate.
            self.context = self._current = self._load()
        except (OSError, ssl.SSLError, ValueError) as error:
            raise Invalid(f"cannot use --tls-cert {chain} with --tls-key {key}: {_reason(error)}") from None
        self.context.sni_callback = self._on_handshake

    def _on_handshake(self, connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        signature = self._read_signature()
        if signature != self._signature:
            self._signature = signature
            try:
                self._current = self._load()
            except (OSError, ssl.SSLError, ValueError) as error:
                _log.error("tls.reload_failed", certificate=str(self._chain), error=_reason(error))
            else:
                _log.info("tls.reloaded", certificate=str(self._chain))
        connection.context = self._current

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        for path in (self._chain, self._key):
            path.read_bytes()  # OpenSSL's errors do not name the file
        context.load_cert_chain(self._chain, self._key, password=_refuse_encrypted)
        return context

    def _read_signature(self) -> _Signature:
        """An empty signature means that a file is missing, as can happen briefly during its replacement."""
        try:
            states = [path.stat() for path in (self._chain, self._key)]
        except OSError:
            return ()
        return tuple((state.st_ino, state.st_size, state.st_mtime_ns) for state in states)


@dataclass(frozen=True, slots=True)
class Tls:
    """
    The server's TLS setup.

    ``context`` serves HTTPS; None means HTTP. ``ca_file`` holds the certificates (PEM) that clients need to verify
    ``public_url``; None if their systems trust the CA already.
    """

    context: ssl.SSLContext | None
    ca_file: Path | None
    #: The reason why clients will not trust the certificate; None if they will.
    problem: str | None


def open_tls(settings: Settings) -> Tls:
    """Load the certificate, and store the CA certificates for clients in the state directory. Raises Invalid."""
    client_ca = read_client_ca(settings)
    ca_file = _keep_client_ca(settings.state_dir / "ca.pem", client_ca)
    if not settings.has_tls:
        return Tls(None, ca_file, None)
    context = Certificate(settings.tls_cert, settings.tls_key).context
    problem = client_problem(context, settings.public_url, client_ca)
    if problem:
        _log.warning("tls.not_trusted", public_url=settings.public_url, error=problem)
    return Tls(context, ca_file, problem)


def read_client_ca(settings: Settings) -> str | None:
    """
    The CA certificates (PEM) that clients need to verify ``public_url``; None if their systems trust the CA.

    These are the certificates in ``tls_ca``, or else the root certificate at the end of the served chain. Raises
    Invalid.
    """
    try:
        if settings.tls_ca != Path():
            certificates = x509.load_pem_x509_certificates(settings.tls_ca.read_bytes())
        elif settings.has_tls:
            last = x509.load_pem_x509_certificates(settings.tls_cert.read_bytes())[-1]
            certificates = [last] if last.issuer == last.subject else []
        else:
            return None
    except (OSError, ValueError) as error:
        source = "--tls-cert" if settings.tls_ca == Path() else "--tls-ca"
        raise Invalid(f"cannot read the certificates in {source}: {_reason(error)}") from None
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates) or None


def _keep_client_ca(path: Path, client_ca: str | None) -> Path | None:
    """Write the certificates to ``path`` for clients on this machine. Returns None if there are none to write."""
    if client_ca is None:
        path.unlink(missing_ok=True)
        return None
    fresh = path.with_suffix(".new")
    fresh.write_text(client_ca)
    fresh.replace(path)
    return path


def client_problem(server: ssl.SSLContext, public_url: str, client_ca: str | None) -> str | None:
    """
    The reason why clients will refuse the certificate, determined by an in-memory handshake; None if they will not.
    """
    client = ssl.create_default_context(cadata=client_ca)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(to_client, to_server, server_hostname=urlsplit(public_url).hostname),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(3):  # more round trips than any TLS version needs
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_message
            except ssl.SSLError as error:
                return _reason(error)
    return None


def _refuse_encrypted() -> str:
    raise ValueError("the key is encrypted: give one without a pass phrase")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    if isinstance(error, OSError):
        return f"{error.strerror}: {error.filename}"
    return str(error)
