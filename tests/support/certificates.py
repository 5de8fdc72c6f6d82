"""A certificate authority of a test, and the server certificates that it issues."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """A CA. ``file`` is its certificate; ``chain`` and ``key`` are the server's, replaced by each ``issue``."""

    def __init__(self, folder: Path, name: str = "test CA") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file, self.chain, self.key = (folder / file for file in ("ca.pem", "server.pem", "server.key"))
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_CA_USAGE, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    @classmethod
    def of_loopback(cls, folder: Path) -> Authority:
        """Return a new CA that has issued a certificate for 127.0.0.1."""
        authority = cls(folder)
        authority.issue("127.0.0.1")
        return authority

    def issue(self, *names: str, with_root: bool = False, left: timedelta = timedelta(days=1)) -> int:
        """
        Issue a certificate for IP addresses and DNS names. Return its serial number, as in a TLS handshake.

        ``with_root`` appends the CA's certificate to the chain. The certificate expires after ``left``.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            self._builder(x509.Name([]), key.public_key(), left)
            .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=True)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        replace(self.key, private)
        replace(self.chain, pem + self.file.read_bytes() if with_root else pem)
        return certificate.serial_number

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--tls-cert", str(self.chain), "--tls-key", str(self.key))

    def _builder(
        self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, left: timedelta = timedelta(days=1)
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + left)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(issuer_key, critical=False)
        )


def replace(path: Path, content: bytes) -> None:
    """Replace a file atomically, as certificate managers do."""
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_bytes(content)
    fresh.replace(path)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


_CA_USAGE = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
