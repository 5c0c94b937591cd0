"""Key rings from their files."""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.manifest import SegmentEncryption
from spark_tiering.segment_reading.key_files import KeyRingSettings, process_key_ring, read_key_ring
from tests.support.stores.encrypted_segments import DATA_KEY, IDS, KeyFiles, seal_key

if TYPE_CHECKING:
    from pathlib import Path


def opens(settings: KeyRingSettings, key_id: str) -> bool:
    ring = process_key_ring(settings)
    assert ring is not None
    found = ring.cipher(SegmentEncryption(key_id, seal_key(DATA_KEY, key_id), b""))
    if isinstance(found, LayoutFinding):
        assert found.kind is LayoutFault.ENCRYPTED
    return not isinstance(found, LayoutFinding)


def test_ring_when_read_has_its_keys(tmp_path: Path) -> None:
    """A ring's keys are read, and files without a folder lie beside it."""
    files = KeyFiles(tmp_path / "keys")
    assert read_key_ring(files.settings).ids == set(IDS)
    assert process_key_ring(None) is None
    ring = process_key_ring(files.settings)
    assert process_key_ring(files.settings) is ring
    assert pickle.loads(pickle.dumps(files.settings)) == files.settings


def test_ring_when_a_key_is_added_is_read_anew(tmp_path: Path) -> None:
    """A ring with an added key is read again, because a job may run for days."""
    files = KeyFiles(tmp_path / "keys", IDS[:1])
    assert opens(files.settings, IDS[0])
    assert not opens(files.settings, IDS[1])
    files.write(dict.fromkeys(IDS, ""))
    assert opens(files.settings, IDS[1])


def test_ring_when_a_key_becomes_another_one_is_read_anew(tmp_path: Path) -> None:
    """A ring whose key file changed is read again."""
    files = KeyFiles(tmp_path / "keys", IDS[:1])
    first = process_key_ring(files.settings)
    key = files.folder / f"{IDS[0]}.pem"
    os.utime(key, ns=(1, 1))
    assert process_key_ring(files.settings) is not first


@pytest.mark.parametrize("name", ["ring.json", f"{IDS[0]}.pem"])
@pytest.mark.parametrize("mode", [0o604, 0o602])
def test_ring_when_other_users_may_use_it_is_refused(tmp_path: Path, name: str, mode: int) -> None:
    """A ring that other users can read or change is refused."""
    files = KeyFiles(tmp_path / "keys")
    (files.folder / name).chmod(mode)
    with pytest.raises(ConfigError, match="every user of the machine"):
        read_key_ring(files.settings)


def test_ring_when_files_are_missing_large_or_no_keys_is_refused_by_name(tmp_path: Path) -> None:
    """Missing, large or invalid key files are refused in one line each, without their content."""
    files = KeyFiles(tmp_path / "keys")
    key = files.folder / f"{IDS[0]}.pem"
    key.write_bytes(b"x" * 70_000)
    with pytest.raises(ConfigError, match=rf"{IDS[0]}\.pem: more than"):
        read_key_ring(files.settings)
    key.write_bytes(b"nonsense")
    with pytest.raises(ConfigError, match=rf"{IDS[0]}\.pem: no private key"):
        read_key_ring(files.settings)
    key.unlink()
    with pytest.raises(ConfigError, match=rf"{IDS[0]}\.pem cannot be read"):
        read_key_ring(files.settings)
    with pytest.raises(ConfigError, match="nowhere"):
        process_key_ring(KeyRingSettings(str(tmp_path / "nowhere")))
