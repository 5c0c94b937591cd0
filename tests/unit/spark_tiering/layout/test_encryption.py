"""Data keys and rings of private keys, and the parts of a segment that a data key seals."""

from __future__ import annotations

import base64
import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from rlmm.errors import ConfigError
from spark_tiering.layout.encryption import PrivateKey, SegmentCipher
from spark_tiering.layout.findings import LayoutFault
from spark_tiering.layout.key_ring import KeyRing, cipher_of, parse_key_ring
from spark_tiering.layout.manifest import Manifest, SegmentEncryption
from spark_tiering.layout.manifest_document import format_manifest, parse_manifest
from tests.support.stores.encrypted_segments import DATA_KEY, IDS, pem, seal, seal_key
from tests.support.stores.findings import assert_finding
from tests.support.stores.recorded_manifests import plain_manifest

RECORDED = Path(__file__).resolve().parents[3] / "data/key-ring"
AAD = bytes(range(32))


def test_data_key_when_sealed_by_openssl_or_by_us_is_opened() -> None:
    """A data key opens that OpenSSL sealed with OAEP and SHA3-512, and after each of our seals."""
    key = PrivateKey((RECORDED / "key.pem").read_bytes(), "key.pem")
    sealed = base64.b64decode((RECORDED / "sealed-data-key.txt").read_text())
    assert key.open(sealed) == bytes(range(100, 132))
    ours = PrivateKey(pem(IDS[0]), "here")
    assert [ours.open(seal_key(DATA_KEY, IDS[0])) for _ in range(5)] == [DATA_KEY] * 5


def test_data_key_when_it_is_another_ones_or_changed_is_not_opened() -> None:
    """A data key of another ring key, or with changed bytes, is not opened."""
    key = PrivateKey(pem(IDS[0]), "here")
    sealed = seal_key(DATA_KEY, IDS[0])
    for wrong in (
        seal_key(DATA_KEY, IDS[1]),
        seal_key(bytes(16), IDS[0]),
        bytes([sealed[0] ^ 1]) + sealed[1:],
        sealed[:-1] + bytes([sealed[-1] ^ 1]),
        sealed[:-1],
        sealed + b"\0",
        b"\xff" * len(sealed),
        bytes(len(sealed)),
        b"",
    ):
        assert key.open(wrong) is None


def pem_of(
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, password: bytes | None = None
) -> bytes:
    protection = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection)


UNUSABLE = {
    "empty": (b"", "no private key"),
    "cut": (b"-----BEGIN PRIVATE KEY-----\n!", "no private key"),
    "elliptic": (pem_of(ec.generate_private_key(ec.SECP256R1())), "none of RSA"),
    "short": (pem_of(rsa.generate_private_key(65537, 1024)), "1024 bits"),
    "protected": (pem_of(rsa.generate_private_key(65537, 2048), b"secret"), "passphrase"),
}


@pytest.mark.parametrize(("content", "why"), UNUSABLE.values(), ids=UNUSABLE)
def test_key_file_when_unusable_is_refused_without_its_content(content: bytes, why: str) -> None:
    """An unusable key file is refused with its path and reason, never its content."""
    with pytest.raises(ConfigError, match=why) as refused:
        PrivateKey(content, "ring/key.pem")
    assert "ring/key.pem" in str(refused.value)
    assert "BEGIN" not in str(refused.value)


def test_part_when_sealed_is_opened() -> None:
    """A sealed part, also an empty one, is opened."""
    cipher = SegmentCipher(DATA_KEY, AAD)
    for content in (b"", b"x", bytes(range(256)) * 100):
        assert cipher.open(memoryview(seal(content, AAD)), "part") == content


SEALED = seal(b"content", AAD)
FOREIGN = {
    "another vector": (DATA_KEY, AAD, bytes([SEALED[0] ^ 1]) + SEALED[1:], LayoutFault.DAMAGED),
    "other content": (
        DATA_KEY, AAD, SEALED[:12] + bytes([SEALED[12] ^ 1]) + SEALED[13:], LayoutFault.DAMAGED,
    ),
    "another tag": (DATA_KEY, AAD, SEALED[:-1] + bytes([SEALED[-1] ^ 1]), LayoutFault.DAMAGED),
    "another aad": (DATA_KEY, bytes(32), SEALED, LayoutFault.DAMAGED),
    "another key": (bytes(32), AAD, SEALED, LayoutFault.DAMAGED),
    "shorter than vector and tag": (DATA_KEY, AAD, bytes(27), LayoutFault.LENGTH),
}  # fmt: skip


@pytest.mark.parametrize(("key", "aad", "sealed", "kind"), FOREIGN.values(), ids=FOREIGN)
def test_part_changed_is_damaged(key: bytes, aad: bytes, sealed: bytes, kind: LayoutFault) -> None:
    """A part with a changed bit, another key or aad, or too few bytes gives no bytes."""
    assert_finding(SegmentCipher(key, aad).open(sealed, "chunk 3"), kind, "chunk 3")


def test_keys_when_printed_or_pickled_show_nothing_and_do_not_travel() -> None:
    """Keys show nothing in print, a ring its ids, and none is pickled: executors read files."""
    secrets = (PrivateKey(pem(IDS[0]), "here"), SegmentCipher(DATA_KEY, AAD), ring(IDS[0]))
    for secret, shown in zip(secrets, ("(...)", "(...)", f"KeyRing(['{IDS[0]}'])"), strict=True):
        assert repr(secret).endswith(shown)
        assert DATA_KEY.hex() not in repr(vars(secret))
        with pytest.raises(TypeError, match="not sent"):
            pickle.dumps(secret)


def ring(*ids: str) -> KeyRing:
    return KeyRing({one: PrivateKey(pem(one), one) for one in ids})


def test_ring_file_when_read_names_the_files_of_its_keys() -> None:
    """A ring file names the files of its keys and holds no key."""
    content = {"format": "rlmm-key-ring", "version": 1, "keys": {"a": "a.pem", "b": "/k/b.pem"}}
    found = parse_key_ring(json.dumps(content).encode(), "ring.json")
    assert found == {"a": "a.pem", "b": "/k/b.pem"}


@pytest.mark.parametrize(
    "content",
    [
        b'{"format": "rlmm-key-ring", "version": 1, "keys": {"a:b": "x"}}',
        b'{"format": "rlmm-key-ring", "version": 1, "keys": {" ": "x"}}',
        b'{"format": "rlmm-key-ring", "version": 1, "keys": {}, "more": 1}',
    ],
)
def test_ring_file_when_it_is_none_is_refused(content: bytes) -> None:
    """A file that is no ring is refused by name."""
    with pytest.raises(ConfigError, match=r"ring\.json is no key ring"):
        parse_key_ring(content, "ring.json")


def test_cipher_when_the_ring_has_several_keys_is_that_of_the_segments_own() -> None:
    """The cipher uses the key that its segment names, also after a rotation."""
    for key_id in IDS:
        encryption = SegmentEncryption(key_id, seal_key(DATA_KEY, key_id), AAD)
        found = ring(*IDS).cipher(encryption)
        assert isinstance(found, SegmentCipher)
        assert found.open(seal(b"content", AAD), "part") == b"content"


def test_cipher_when_the_ring_lacks_the_key_or_has_another_is_told_apart() -> None:
    """A missing key and a wrong key are different findings, with different remedies."""
    encryption = SegmentEncryption(IDS[0], seal_key(DATA_KEY, IDS[0]), AAD)
    assert_finding(ring(IDS[1]).cipher(encryption), LayoutFault.ENCRYPTED, IDS[0])
    assert_finding(
        KeyRing({IDS[0]: PrivateKey(pem(IDS[1]), "x")}).cipher(encryption), LayoutFault.KEY_WRONG
    )


def test_cipher_of_a_plain_segment_is_none_and_of_a_sealed_one_without_ring_a_finding() -> None:
    """A plain segment needs no cipher; a sealed one without ring is a finding."""
    assert cipher_of(plain_manifest(), None) is None
    sealed = replace(plain_manifest(), encryption=SegmentEncryption("key-9", b"x", AAD))
    assert_finding(cipher_of(sealed, None), LayoutFault.ENCRYPTED, "key-9")


def test_manifest_when_it_is_of_an_encrypted_segment_keeps_what_opens_it() -> None:
    """The manifest of an encrypted segment keeps key id, sealed key and aad."""
    encryption = SegmentEncryption(IDS[0], seal_key(DATA_KEY, IDS[0]), AAD)
    manifest = replace(plain_manifest(), encryption=encryption)
    assert parse_manifest(format_manifest(manifest)) == manifest
    assert manifest.is_encrypted
    assert "sealed_key" not in repr(encryption)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dataKey", "no colon"),
        ("dataKey", ":AAAA"),
        ("dataKey", "a:b:AAAA"),
        ("dataKey", "a:"),
        ("dataKey", "a:!"),
        ("aad", "!"),
    ],
)
def test_manifest_when_its_encryption_is_unreadable_is_a_finding(name: str, value: object) -> None:
    """An encryption that the plugin does not read is a finding by its field."""
    manifest = replace(plain_manifest(), encryption=SegmentEncryption("a", b"x", AAD))
    fields = json.loads(format_manifest(manifest))
    fields["encryption"][name] = value
    found = parse_manifest(json.dumps(fields).encode())
    assert not isinstance(found, Manifest)
    assert found.kind is LayoutFault.FIELD_WRONG
    assert "encryption" in found.detail
