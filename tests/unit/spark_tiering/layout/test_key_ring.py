"""Rings of private keys: the file, and which key opens a segment."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pytest

from rlmm.errors import ConfigError
from spark_tiering.layout.encryption import PrivateKey, SegmentCipher
from spark_tiering.layout.findings import LayoutFault
from spark_tiering.layout.key_ring import KeyRing, cipher_of, parse_key_ring
from spark_tiering.layout.manifest import Manifest, SegmentEncryption
from spark_tiering.layout.manifest_document import format_manifest, parse_manifest
from tests.support.stores.encrypted_segments import DATA_KEY, IDS, pem, seal, seal_key
from tests.support.stores.findings import assert_finding
from tests.support.stores.recorded_manifests import plain_manifest

AAD = bytes(range(32))


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


def test_ring_when_printed_or_pickled_shows_ids_alone_and_does_not_travel() -> None:
    """A ring shows only key ids and refuses to be pickled: executors read its files."""
    assert repr(ring(IDS[0])) == f"KeyRing(['{IDS[0]}'])"
    with pytest.raises(TypeError, match="not sent"):
        pickle.dumps(ring(IDS[0]))


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
