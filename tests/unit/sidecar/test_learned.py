"""The file of learned clusters: reading and writing, with refusals by name."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.errors import ConfigError, InvalidArgument
from rlmm.sidecar.cluster_file import (
    LEARNED_FILE,
    learned_bytes,
    read_learned,
    read_learned_bytes,
    require_cluster_id,
    require_servers,
    write_learned,
)

if TYPE_CHECKING:
    from pathlib import Path

GOOD = {"abcDEF-_09": "one:9092", "blue": "one:9092,[::1]:9093"}


def test_learned_clusters_when_written_then_read_again(tmp_path: Path) -> None:
    """A missing file means that there are no learned clusters."""
    assert read_learned(tmp_path) == {}
    write_learned(tmp_path, GOOD)
    write_learned(tmp_path, GOOD)
    assert read_learned(tmp_path) == GOOD
    assert [path.name for path in tmp_path.iterdir()] == [LEARNED_FILE]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"version": 2, "clusters": []}',
        b'{"version": 1, "clusters": {}}',
        b'{"version": 1, "clusters": [1]}',
        b'{"version": 1, "clusters": [{"cluster_id": "a"}]}',
        b'{"version": 1, "clusters": [{"cluster_id": "../up", "bootstrap": "a:1"}]}',
        b'{"version": 1, "clusters": [{"cluster_id": "a", "bootstrap": "nowhere"}]}',
        learned_bytes({"a": "b:1"}) * 2,
        b"[" * 100_000,
        b" " * (1024 * 1024 + 1),
    ],
    ids=lambda content: f"{content[:24]!a} of {len(content)}",
)
def test_file_when_damaged_or_hostile_then_refused_by_name(tmp_path: Path, content: bytes) -> None:
    """The refusal names the damaged file and leaves it in place."""
    path = tmp_path / LEARNED_FILE
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=LEARNED_FILE):
        read_learned(tmp_path)
    assert path.read_bytes() == content


@given(st.binary(max_size=200) | st.recursive(st.none() | st.integers() | st.text(), st.lists))
def test_bytes_when_anything_then_clusters_or_one_error(content: object) -> None:
    """Reading random bytes ends with clusters or a ValueError."""
    found = content if isinstance(content, bytes) else json.dumps(content).encode()
    with suppress(ValueError):
        assert isinstance(read_learned_bytes(found), dict)


@pytest.mark.parametrize("cluster_id", ["", ".", "..", ".hidden", "a/b", "a\0", "a\n", "x" * 101])
def test_cluster_id_when_it_cannot_be_a_folder_then_refused(cluster_id: str) -> None:
    """A cluster id that cannot name a folder is refused."""
    with pytest.raises(InvalidArgument):
        require_cluster_id(cluster_id)


@pytest.mark.parametrize("bootstrap", ["", ",", "host", "host:0", "a:1," * 101])
def test_bootstrap_when_no_address_then_refused(bootstrap: str) -> None:
    """A text that is no address is refused."""
    with pytest.raises(InvalidArgument):
        require_servers(bootstrap)
    assert require_servers(" a:1 , b:2,") == ("a:1", "b:2")
