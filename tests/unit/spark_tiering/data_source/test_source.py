"""The source as Spark calls it, and how far a micro-batch goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, SupportsTriggerAvailableNow

from rlmm.errors import ConfigError
from spark_tiering.data_source.bounds import PartitionName
from spark_tiering.data_source.source import RlmmDataSource, full_schema
from spark_tiering.data_source.stream import (
    TriggerPatience,
    available,
    format_offsets,
    parse_offsets,
    step,
)

if TYPE_CHECKING:
    from collections.abc import Callable


PLACE = {"store": "/tier", "subscribe": "orders"}
SCHEMA = full_schema(has_headers=False)


@pytest.mark.parametrize(
    "ask",
    [
        lambda reader: reader.prepareForTriggerAvailableNow(),
        lambda reader: reader.getDefaultReadLimit(),
        lambda reader: reader.initialOffset(),
        lambda reader: reader.latestOffset({}, ReadAllAvailable()),
    ],
)
def test_stream_when_an_option_is_wrong_then_its_reader_says_so(ask: Callable[[Any], Any]) -> None:
    """A stream with a wrong option has a reader that raises the reason at its first call."""
    reader = RlmmDataSource({**PLACE, "endingOffsets": "latest"}).streamReader(SCHEMA)
    assert isinstance(reader, SupportsTriggerAvailableNow)
    with pytest.raises(ConfigError, match="a stream has no end"):
        ask(reader)
    reader.stop()


def test_writing_when_it_is_tried_then_it_is_refused_in_words() -> None:
    """A write to a table or as a stream is refused in one line."""
    source = RlmmDataSource(PLACE)
    for writer in (source.writer, source.streamWriter):
        with pytest.raises(ConfigError, match="reads tiered segments and writes none"):
            writer(SCHEMA, overwrite=False)


A0, A1, B0 = PartitionName("a", 0), PartitionName("a", 1), PartitionName("b", 0)


def test_offsets_when_they_are_kept_then_in_the_form_of_sparks_kafka_source() -> None:
    """Stream offsets have the JSON form of Spark's Kafka source, sorted by topic and partition."""
    offsets = {B0: 3, A1: 2, A0: 1}
    assert format_offsets(offsets) == {"a": {"0": 1, "1": 2}, "b": {"0": 3}}
    assert list(format_offsets(offsets)) == ["a", "b"]
    assert parse_offsets(format_offsets(offsets)) == offsets


@pytest.mark.parametrize(
    "written", [None, [], {"a": 3}, {"a": {"x": 3}}, {"a": {"0": "3"}}, {"a": {"0": -1}}]
)
def test_offsets_when_a_checkpoint_is_another_sources_then_it_is_refused(written: Any) -> None:
    """A checkpoint of another source is refused."""
    with pytest.raises(ConfigError, match="no reader's of this source"):
        parse_offsets(written)


def test_step_when_it_is_limited_or_not_then_partitions_share_by_what_they_have() -> None:
    """A limit is divided by backlog; without one a step goes to the end; deleted ones stay."""
    assert step({A0: 5, B0: 7}, {A0: 100}, None) == {A0: 100, B0: 7}
    assert step({A0: 0, A1: 0}, {A0: 300, A1: 100}, 100) == {A0: 75, A1: 25}


@given(
    st.dictionaries(
        st.builds(PartitionName, st.sampled_from("ab"), st.integers(0, 4)),
        st.tuples(st.integers(0, 1000), st.integers(0, 1000)),
        min_size=1,
    ),
    st.integers(1, 500),
)
def test_step_when_repeated_then_it_reaches_the_end_and_no_step_is_too_large(
    ends: dict[PartitionName, tuple[int, int]], most: int
) -> None:
    """Repeated steps reach the end, and each step but the last takes the full limit."""
    at = {one: first for one, (first, _) in ends.items()}
    latest = {one: first + more for one, (first, more) in ends.items()}
    while at != latest:
        before = dict(at)
        left = available(before, latest)
        at = step(before, latest, most)
        assert sum(at.values()) - sum(before.values()) == min(most, left)
        assert all(before[one] <= at[one] <= latest[one] for one in at)


def test_patience_when_there_is_little_then_it_waits_until_its_time_is_over() -> None:
    """A step with too little data waits until the delay since the last batch is over."""
    patience = TriggerPatience(100, 1_000)
    steps = [(99, 5_000), (99, 5_999), (99, 6_000), (99, 6_999), (100, 6_999), (0, 7_998)]
    begins = [patience.is_over(*each) for each in steps]
    assert begins == [False, False, True, False, True, False]
    assert TriggerPatience(None, 1_000).is_over(0, 0)
