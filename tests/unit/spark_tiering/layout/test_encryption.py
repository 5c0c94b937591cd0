"""Data keys opened with a private key, and the parts of a segment with a data key."""

from __future__ import annotations

import base64
import pickle
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
from tests.support.stores.encrypted_segments import DATA_KEY, IDS, pem, seal, seal_key
from tests.support.stores.findings import assert_finding

RECORDED = Path(__file__).resolve().parents[3] / "data/key-ring"
AAD = bytes(range(32))


def test_data_key_when_sealed_by_openssl_is_opened() -> None:
    """A data key that OpenSSL sealed with OAEP and SHA3-512 is opened."""
    key = PrivateKey((RECORDED / "key.pem").read_bytes(), "key.pem")
    sealed = base64.b64decode((RECORDED / "sealed-data-key.txt").read_text())
    assert key.open(sealed) == bytes(range(100, 132))


def test_data_key_when_sealed_again_is_opened_again() -> None:
    """A data key opens after each of several randomised sealings."""
    key = PrivateKey(pem(IDS[0]), "here")
    for _ in range(5):
        assert key.open(seal_key(DATA_KEY, IDS[0])) == DATA_KEY


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


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(b"", "no private key", id="empty"),
        pytest.param(b"-----BEGIN PRIVATE KEY-----\n!", "no private key", id="cut"),
        pytest.param(
            ec.generate_private_key(ec.SECP256R1()).private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
            ),
            "none of RSA",
            id="elliptic",
        ),
        pytest.param(
            rsa.generate_private_key(65537, 1024).private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
            ),
            "1024 bits",
            id="short",
        ),
        pytest.param(
            rsa.generate_private_key(65537, 2048).private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
            ),
            "passphrase",
            id="protected",
        ),
    ],
)
def test_key_file_when_it_is_no_usable_key_is_refused_without_its_content(
    content: bytes, why: str
) -> None:
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


@pytest.mark.parametrize("at", [0, 12, -1])
def test_part_when_a_bit_of_vector_content_or_tag_is_changed_is_damaged(at: int) -> None:
    """A part with a changed bit in vector, content or tag gives no bytes."""
    sealed = bytearray(seal(b"content", AAD))
    sealed[at] ^= 1
    assert_finding(
        SegmentCipher(DATA_KEY, AAD).open(bytes(sealed), "chunk 3"), LayoutFault.DAMAGED, "chunk 3"
    )


def test_part_when_aad_or_key_are_others_is_damaged() -> None:
    """A part opened with another key or other aad is damaged."""
    sealed = seal(b"content", AAD)
    for cipher in (SegmentCipher(DATA_KEY, bytes(32)), SegmentCipher(bytes(32), AAD)):
        assert_finding(cipher.open(sealed, "part"), LayoutFault.DAMAGED)


def test_part_when_it_is_too_short_to_be_one_has_another_length() -> None:
    """A part shorter than vector and tag is a finding."""
    assert_finding(SegmentCipher(DATA_KEY, AAD).open(bytes(27), "part"), LayoutFault.LENGTH)


def test_keys_when_printed_or_pickled_show_nothing_and_do_not_travel() -> None:
    """Keys show nothing in print and refuse to be pickled."""
    for secret in (PrivateKey(pem(IDS[0]), "here"), SegmentCipher(DATA_KEY, AAD)):
        assert repr(secret).endswith("(...)")
        assert DATA_KEY.hex() not in repr(vars(secret))
        with pytest.raises(TypeError, match="not sent"):
            pickle.dumps(secret)
