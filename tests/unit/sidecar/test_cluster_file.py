"""Learned clusters: their file, and the addresses that may be tried."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
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
from rlmm.sidecar.connection_trials import (
    AGAIN,
    AT_A_TIME_MAX,
    OTHER_S,
    REMEMBERED_MAX,
    ConnectionTrials,
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


WRONG = ConfigError("wrong")


class Clock:
    now_s = 0.0


def made() -> tuple[ConnectionTrials, Clock]:
    clock = Clock()
    return ConnectionTrials(lambda: clock.now_s), clock


def test_address_when_it_fails_again_and_again_then_pauses_double_up_to_the_last() -> None:
    """The pauses double up to the last one, however often the address is named."""
    trials, clock = made()
    tried_s = []
    while clock.now_s < 300:
        if trials.begin("blue", "a:1", is_learned=False):
            tried_s.append(clock.now_s)
            trials.failed("blue", WRONG)
        clock.now_s += 0.5
    pauses = [later - at for at, later in pairwise(tried_s)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert trials.last("blue") == ("a:1", WRONG)


def test_address_when_another_is_told_then_tried_soon_and_never_two_at_a_time() -> None:
    """A newly named address is tried soon, and never two at a time."""
    trials, clock = made()
    for _ in range(7):
        clock.now_s += AGAIN.last_s
        assert trials.begin("blue", "wrong:1", is_learned=False)
        trials.failed("blue", WRONG)
    assert not trials.begin("blue", "right:1", is_learned=False)
    clock.now_s += OTHER_S
    assert trials.begin("blue", "right:1", is_learned=False)
    assert trials.last("blue") is None
    clock.now_s += 1_000
    assert not trials.begin("blue", "other:1", is_learned=False)
    trials.ended("blue")
    assert trials.last("blue") is None


def test_cluster_when_followed_for_long_then_the_next_failure_begins_anew() -> None:
    """The pauses start anew only after a cluster was followed for long."""
    trials, clock = made()
    assert trials.begin("blue", "a:1", is_learned=True)
    trials.ended("blue")
    for pause_s in (1, 2, 4):
        trials.dropped("blue", "a:1", WRONG, lasted_s=0.1)
        clock.now_s += pause_s - 0.1
        assert not trials.begin("blue", "a:1", is_learned=True)
        clock.now_s += 0.1
        assert trials.begin("blue", "a:1", is_learned=True)
        trials.ended("blue")
    trials.dropped("blue", "a:1", WRONG, lasted_s=AGAIN.last_s)
    clock.now_s += 1
    assert trials.begin("blue", "a:1", is_learned=True)


def test_cluster_when_dropped_during_a_try_then_none_is_begun_beside_that() -> None:
    """A cluster dropped during a trial gets no second trial before the first one ends."""
    trials, clock = made()
    assert trials.begin("blue", "b:1", is_learned=True)
    trials.dropped("blue", "a:1", WRONG, lasted_s=100.0)
    clock.now_s += 100
    assert not trials.begin("blue", "a:1", is_learned=True)
    trials.ended("blue")
    assert trials.begin("blue", "a:1", is_learned=True)


def test_clusters_when_many_are_made_up_then_few_are_tried_and_remembered() -> None:
    """Few of many made-up clusters are tried and remembered, and learned ones are not affected."""
    trials, clock = made()
    trials.dropped("blue", "a:1", WRONG, lasted_s=0.0)
    begun = [trials.begin(f"made-up-{number}", "x:1", is_learned=False) for number in range(100)]
    assert sum(begun) == AT_A_TIME_MAX
    assert trials.begin("green", "b:1", is_learned=True)
    for number in range(AT_A_TIME_MAX):
        trials.failed(f"made-up-{number}", WRONG)
    for number in range(1_000):
        assert trials.begin(f"more-{number}", "x:1", is_learned=False)
        trials.failed(f"more-{number}", WRONG)
    assert len(trials._of) <= REMEMBERED_MAX
    assert trials.last("blue") is not None
    assert trials.last("made-up-0") is None
    clock.now_s += 1
    trials.ended("green")
