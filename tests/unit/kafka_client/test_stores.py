"""Java's key stores, read as Java clients read them, and the errors for unreadable ones."""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import os
import socket
import ssl
import struct
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from rlmm.base.secret import Secret
from rlmm.errors import ConfigError
from rlmm.kafka_client.security.client_options import tls_context
from rlmm.kafka_client.security.key_stores import StoreUnreadable, is_store, read_store
from rlmm.kafka_client.settings import SecurityProtocol, SecuritySettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


PROTECTOR = bytes.fromhex("300e060a2b060104012a021101010500")


def text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode()


def block(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 0x80 else b"\x82" + struct.pack(">H", size)
    return bytes([tag]) + length + content


def hidden(key: bytes, password: str) -> bytes:
    secret = password.encode("utf-16-be")
    salt = last = os.urandom(20)
    stream = b""
    while len(stream) < len(key):
        last = hashlib.sha1(secret + last).digest()
        stream += last
    covered = bytes(one ^ other for one, other in zip(key, stream, strict=False))
    check = hashlib.sha1(secret + key).digest()
    return der(0x30, PROTECTOR + der(0x04, salt + covered + check))


def trusted_entry(alias: str, certificate: bytes) -> bytes:
    return struct.pack(">I", 2) + text(alias) + bytes(8) + text("X.509") + block(certificate)


def key_entry(alias: str, envelope: bytes, chain: list[bytes]) -> bytes:
    parts = b"".join(text("X.509") + block(one) for one in chain)
    head = struct.pack(">I", 1) + text(alias) + bytes(8) + block(envelope)
    return head + struct.pack(">I", len(chain)) + parts


def jks(*entries: bytes, password: str, version: int = 2) -> bytes:
    body = b"\xfe\xed\xfe\xed" + struct.pack(">II", version, len(entries)) + b"".join(entries)
    secret = password.encode("utf-16-be")
    return body + hashlib.sha1(secret + b"Mighty Aphrodite" + body).digest()


def der_of(pem: bytes) -> bytes:
    return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)


def key_der(pem: bytes) -> bytes:
    key = load_pem_private_key(pem, password=None)
    return key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def p12(
    authority: trustme.CA, issued: trustme.LeafCert | None = None, password: str | None = None
) -> bytes:
    how: KeySerializationEncryption = NoEncryption()
    if password is not None:
        how = BestAvailableEncryption(password.encode())
    ca = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    if issued is None:
        return pkcs12.serialize_key_and_certificates(b"ca", None, None, [ca], how)
    key = load_pem_private_key(issued.private_key_pem.bytes(), password=None)
    own = x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
    return pkcs12.serialize_key_and_certificates(b"own", key, own, [ca], how)  # type: ignore[arg-type]


PASSWORD, KEY_PASSWORD = "changeit", "other"


class Vouched:
    """An authority, and a key that it signed."""

    def __init__(self) -> None:
        self.authority = trustme.CA()
        self.issued = self.authority.issue_cert("localhost")
        self.ca = der_of(self.authority.cert_pem.bytes())
        self.own = der_of(self.issued.cert_chain_pems[0].bytes())
        self.key = key_der(self.issued.private_key_pem.bytes())

    def jks_keys(self, key_password: str = PASSWORD) -> bytes:
        envelope = hidden(self.key, key_password)
        return jks(key_entry("own", envelope, [self.own, self.ca]), password=PASSWORD)

    def jks_trust(self) -> bytes:
        return jks(trusted_entry("ca", self.ca), password=PASSWORD)


@pytest.fixture(scope="module")
def vouched() -> Vouched:
    return Vouched()


@pytest.mark.parametrize("key_password", [None, KEY_PASSWORD])
def test_jks_when_its_key_is_wanted_is_opened(vouched: Vouched, key_password: str | None) -> None:
    """The key opens with its own password or with that of the store."""
    content = vouched.jks_keys(key_password or PASSWORD)
    found = read_store(content, PASSWORD, wants_key=True, key_password=key_password)
    assert found.key == vouched.key
    assert found.chain == (vouched.own, vouched.ca)
    trust = read_store(content, PASSWORD, wants_key=False)
    assert (trust.key, trust.trusted) == (None, (vouched.own,))


def test_store_when_read_then_has_certificates_or_a_key_with_its_chain(vouched: Vouched) -> None:
    """JKS trust opens without its password, as in Java, and PKCS12 with or without one."""
    for password in (PASSWORD, None):
        for content in (vouched.jks_trust(), p12(vouched.authority, None, password)):
            trust = read_store(content, password, wants_key=False)
            assert (trust.trusted, trust.key, trust.chain) == ((vouched.ca,), None, ())
        content = p12(vouched.authority, vouched.issued, password)
        keys = read_store(content, password, wants_key=True)
        assert (keys.key, keys.chain) == (vouched.key, (vouched.own, vouched.ca))


def test_form_when_a_file_is_looked_at_then_it_says_itself_what_it_is(vouched: Vouched) -> None:
    """The form comes from the file's bytes, not from its name or the configured type."""
    for content in (vouched.jks_trust(), vouched.jks_keys(), p12(vouched.authority)):
        assert is_store(content)
    assert not is_store(vouched.authority.cert_pem.bytes())
    assert not is_store(b"")


def changed(content: bytes, at: int, value: int) -> bytes:
    return content[:at] + bytes([value]) + content[at + 1 :]


WRONG: dict[str, tuple[Callable[[Vouched], bytes], str | None, str]] = {
    "password": (lambda it: it.jks_trust(), "wrong", "the password does not match, or the file"),
    "changed": (lambda it: changed(it.jks_trust(), 40, 0), PASSWORD, "or the file was changed"),
    "cut off": (lambda it: it.jks_trust()[:60], None, "bytes are wanted at byte"),
    "version": (lambda it: jks(password=PASSWORD, version=3), PASSWORD, "of version 3"),
    "kind": (lambda _: jks(bytes(30), password=PASSWORD), PASSWORD, "an entry of kind 0"),
    "key": (lambda it: it.jks_keys("another"), PASSWORD, "key is not opened by the password"),
    "no password": (lambda it: it.jks_keys(), None, "key is not opened by the password"),
    "other envelope": (
        lambda it: jks(key_entry("own", b"\x30\x03\x30\x01\x05", [it.own]), password=PASSWORD),
        PASSWORD,
        "an element of kind 0x5 where one of 0x6",
    ),
    "jceks": (lambda _: b"\xce\xce\xce\xce" + bytes(40), PASSWORD, "is a JCEKS store"),
    "pkcs12 password": (
        lambda it: p12(it.authority, None, PASSWORD), "wrong", "the password does not match",
    ),
    "pkcs12 garbage": (lambda _: b"\x30\x82garbage", None, "or it is not a PKCS12 store"),
}  # fmt: skip


@pytest.mark.parametrize(("made", "password", "said"), WRONG.values(), ids=WRONG)
def test_store_when_it_cannot_be_read_then_says_why_and_how_to_convert_it(
    vouched: Vouched,
    tmp_path: Path,
    made: Callable[[Vouched], bytes],
    password: str | None,
    said: str,
) -> None:
    """One line has the key, the file and the remedy, and no password."""
    content = made(vouched)
    with pytest.raises(StoreUnreadable, match=said):
        read_store(content, password, wants_key=True)
    file = tmp_path / "store"
    file.write_bytes(content)
    settings = SecuritySettings(
        security_protocol=SecurityProtocol.SSL,
        ssl_keystore_location=str(file),
        ssl_keystore_password=None if password is None else Secret(password),
    )
    with pytest.raises(ConfigError, match=said) as caught:
        tls_context(settings)
    line = str(caught.value)
    assert line.startswith(f"ssl.keystore.location: {file} cannot be read with")
    assert "keytool -importkeystore" in line
    assert "\n" not in line
    assert password is None or password not in line


def test_jks_when_any_byte_is_changed_or_missing_then_is_refused(vouched: Vouched) -> None:
    """Lengths that lie lead nowhere; with the password every change is found."""
    content = vouched.jks_keys()
    for at in range(0, len(content), 7):
        for broken in (changed(content, at, content[at] ^ 0xFF), content[:at]):
            if not is_store(broken):
                continue
            with pytest.raises(StoreUnreadable):
                read_store(broken, PASSWORD, wants_key=True)
            with contextlib.suppress(StoreUnreadable):
                read_store(broken, None, wants_key=True, key_password=PASSWORD)


def test_pkcs12_when_its_reader_is_not_installed_then_says_so(
    vouched: Vouched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the missing library, which only PKCS12 needs."""
    content, real = p12(vouched.authority), builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return real(name, *rest)

    for name in [name for name in sys.modules if name.startswith("cryptography.hazmat")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(StoreUnreadable, match="the package cryptography, which is not installed"):
        read_store(content, None, wants_key=False)
    assert read_store(vouched.jks_trust(), PASSWORD, wants_key=False).trusted == (vouched.ca,)


def shaken(server: ssl.SSLContext, client: ssl.SSLContext) -> dict[str, Any]:
    ours, theirs = socket.socketpair()
    shown: list[Any] = []

    def serve() -> None:
        with server.wrap_socket(theirs, server_side=True) as secured:
            shown.append(secured.getpeercert())
            secured.recv(1)

    serving = threading.Thread(target=serve)
    serving.start()
    with client.wrap_socket(ours, server_hostname="localhost") as secured:
        secured.send(b"x")
        serving.join()
    return dict(shown[0])


@pytest.mark.parametrize("form", ["jks", "pkcs12"])
def test_stores_when_javas_then_serve_tls(vouched: Vouched, tmp_path: Path, form: str) -> None:
    """The handshake works with Java's truststore and keystore, and no key is written to a disk."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.verify_mode = ssl.CERT_REQUIRED
    vouched.authority.configure_trust(server)
    vouched.authority.issue_cert("localhost").configure_cert(server)
    if form == "jks":
        trust, keys, key_password = (
            vouched.jks_trust(),
            vouched.jks_keys(KEY_PASSWORD),
            KEY_PASSWORD,
        )
    else:
        trust, key_password = p12(vouched.authority, None, PASSWORD), None
        keys = p12(vouched.authority, vouched.issued, PASSWORD)
    (tmp_path / "trust").write_bytes(trust)
    (tmp_path / "keys").write_bytes(keys)
    context = tls_context(
        SecuritySettings(
            security_protocol=SecurityProtocol.SSL,
            ssl_truststore_location=str(tmp_path / "trust"),
            ssl_truststore_password=Secret(PASSWORD),
            ssl_keystore_location=str(tmp_path / "keys"),
            ssl_keystore_password=Secret(PASSWORD),
            ssl_key_password=None if key_password is None else Secret(key_password),
        )
    )
    assert context is not None
    assert len(context.get_ca_certs()) == 1
    assert [one for _, one in shaken(server, context)["subjectAltName"]] == ["localhost"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["keys", "trust"]


def test_store_when_it_holds_nothing_or_is_too_large_then_says_so(
    vouched: Vouched, tmp_path: Path
) -> None:
    """A truststore without certificates, one named as keystore, and one too large are refused."""
    file = tmp_path / "store"

    def refused(role: str, content: bytes, message: str) -> None:
        file.write_bytes(content)
        location: dict[str, Any] = {f"ssl_{role}_location": str(file)}
        settings = SecuritySettings(security_protocol=SecurityProtocol.SSL, **location)
        with pytest.raises(ConfigError, match=rf"^ssl\.{role}\.location: .* {message}"):
            tls_context(settings)

    refused("truststore", jks(password=PASSWORD), "holds no certificate$")
    refused("truststore", bytes(17 * 1024 * 1024), "is too large for certificates")
    for content in (vouched.jks_trust(), p12(vouched.authority)):
        refused("keystore", content, "holds no private key with its certificate$")
