"""The source as Spark calls it, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, SupportsTriggerAvailableNow

from rlmm.errors import ConfigError
from spark_tiering.data_source.source import RlmmDataSource, full_schema

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
