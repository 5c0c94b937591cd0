"""Names of objects where several prefixes are in use."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import SegmentId, Uuid
from spark_tiering.layout.object_names import ObjectKind, object_key, parse_object_key
from spark_tiering.store_listing.key_names import (
    KINDS,
    OtherKey,
    Prefixes,
    SegmentKey,
    check_prefixes,
    shown,
)
from tests.support.builders import tp

ONE = SegmentId(tp("a-b.c_d", 7), Uuid(bytes(range(16))))
KEY = object_key(ONE, 1500, ObjectKind.INDEXES, "kafka/")
_ODD = st.text(st.sampled_from("abAQgw09-_./\n"), max_size=8)


def test_key_of_a_segment_when_read_names_all_of_it() -> None:
    """A segment's key is read into all of its parts, also by pickled prefixes."""
    prefixes = Prefixes("kafka/", ("", "old/"))
    found = prefixes.read(KEY)
    assert found == SegmentKey(0, ONE.partition, bytes(ONE.uuid), 1500, 1)
    assert isinstance(found, SegmentKey)
    assert pickle.loads(pickle.dumps(prefixes)).read(KEY) == found


@given(
    at=st.integers(0, len(KEY)),
    cut=st.integers(0, 3),
    odd=_ODD,
    prefix=st.sampled_from(["kafka/", "", "kafka", "kafka/a-"]),
)
def test_key_when_it_is_nearly_one_is_read_as_by_the_strict_way(
    at: int, cut: int, odd: str, prefix: str
) -> None:
    """The fast key reader accepts exactly the keys that `parse_object_key` accepts."""
    key = KEY[:at] + odd + KEY[at + cut :]
    found, strict = Prefixes(prefix).read(key), parse_object_key(key, prefix)
    if strict is None:
        assert isinstance(found, OtherKey), (found, key)
    else:
        assert isinstance(found, SegmentKey)
        assert SegmentId(found.partition, Uuid(found.uuid)) == strict.segment_id
        assert (found.start_offset, KINDS[found.kind]) == (strict.start_offset, strict.kind)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("kafka/rlmm-jobs/jobs/x/plan.json", OtherKey.JOBS),
        ("kafka/.rlmm-writing/x", OtherKey.JOBS),
        (f"kafka/t-3-{'A' * 22}/{0:020d}-{'B' * 22}.timeindex", OtherKey.LOCAL_TIERED),
        ("kafka/photo.jpg", OtherKey.UNKNOWN),
        (f"kafka/t-{'A' * 22}/0/{0:020d}-{'B' * 22}.log", OtherKey.UNKNOWN),
        (f"kafka/t-{'B' * 22}/0/{0:020d}-{'A' * 22}.log", OtherKey.UNKNOWN),
        ("photo.jpg", OtherKey.OUTSIDE),
    ],
)
def test_key_that_is_no_segments_is_told_apart(key: str, kind: OtherKey) -> None:
    """The key reader distinguishes the jobs' records from foreign objects."""
    assert Prefixes("kafka/").read(key) is kind


def test_f125_key_under_two_prefixes_belongs_to_the_longest() -> None:
    """A key under two prefixes belongs to the longest, so that it counts once."""
    prefixes = Prefixes("", ("a/", "a/b/"))
    for number, prefix in enumerate(("", "a/", "a/b/")):
        assert prefixes.owner(object_key(ONE, 0, ObjectKind.LOG, prefix)) == number
    assert prefixes.owner("a/b/stray") == 2
    assert prefixes.owner("stray") == 0
    assert Prefixes("a/").owner("stray") is None
    assert Prefixes("x/", ("x/", "y/", "y/")).all == ("x/", "y/")


@given(st.text(max_size=300))
def test_key_when_shown_is_one_safe_line(key: str) -> None:
    """A key is shown as one line of safe characters, whatever it contains."""
    assert shown(key).isprintable()
    assert len(shown(key)) <= 210


@pytest.mark.parametrize("prefix", ["a\n", "x" * 1_025, "\udcff"])
def test_prefix_that_no_key_has_is_refused(prefix: str) -> None:
    """An impossible prefix is refused before anything is listed."""
    with pytest.raises(InvalidArgument, match="no key has the prefix"):
        check_prefixes(("", prefix))
