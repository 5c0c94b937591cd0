"""Where chunks lie: by the plugin's rules, and never beyond its 32 bits."""

from __future__ import annotations

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX
from spark_tiering.layout.chunk_index import (
    CHUNK_BYTES,
    FixedChunks,
    VariableChunks,
    chunk_bytes_for,
    is_stored_plain,
    plain_chunks,
)
from spark_tiering.layout.findings import LayoutFault
from tests.support.stores.findings import assert_finding


@pytest.mark.parametrize(
    ("chunks", "stored"),
    [
        (FixedChunks(100, 250, 110, 30), [(0, 110), (110, 110), (220, 30)]),
        (VariableChunks(100, 250, [10, 20, 30]), [(0, 10), (10, 20), (30, 30)]),
    ],
    ids=["fixed", "variable"],
)
def test_chunks_when_asked_lie_where_the_plugin_has_them(
    chunks: FixedChunks | VariableChunks, stored: list[tuple[int, int]]
) -> None:
    """Chunks of the plugin's examples: 250 bytes by 100, stored in three."""
    places = [(0, 0, 100), (1, 100, 100), (2, 200, 50)]
    found = [tuple(chunks.chunk(number)) for number in range(chunks.count)]
    assert found == [place + one for place, one in zip(places, stored, strict=True)]
    assert chunks.stored_bytes == sum(size for _, size in stored)


@pytest.mark.parametrize(
    ("original_bytes", "last_bytes", "count"),
    [
        pytest.param(0, 0, 0, id="nothing"),
        pytest.param(1, 1, 1, id="a byte"),
        pytest.param(99, 99, 1, id="less than a chunk"),
        pytest.param(100, 100, 1, id="one chunk"),
        pytest.param(101, 1, 2, id="one and a byte"),
        pytest.param(300, 100, 3, id="three full ones"),
    ],
)
def test_plain_chunks_end_with_the_rest(original_bytes: int, last_bytes: int, count: int) -> None:
    """The last chunk of an uncompressed log holds the rest, or is a full one."""
    chunks = plain_chunks(original_bytes, 100)
    assert chunks == FixedChunks(100, original_bytes, 100, last_bytes)
    assert (chunks.count, chunks.stored_bytes) == (count, original_bytes)
    assert is_stored_plain(chunks)


@pytest.mark.parametrize(
    ("chunks", "is_plain"),
    [
        pytest.param(FixedChunks(100, 250, 110, 30), False, id="other sizes, same sum"),
        pytest.param(FixedChunks(100, 50, 110, 50), True, id="one chunk"),
        pytest.param(FixedChunks(100, 250, 100, 51), False, id="a byte more"),
        pytest.param(VariableChunks(100, 250, [100, 100, 50]), True, id="variable, as it is"),
        pytest.param(VariableChunks(100, 250, [100, 99, 51]), False, id="variable, same sum"),
    ],
)
def test_chunks_stored_plain_are_seen(chunks: FixedChunks | VariableChunks, is_plain: bool) -> None:
    """Chunks stored uncompressed are those whose positions follow from the chunk size."""
    assert is_stored_plain(chunks) is is_plain


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: FixedChunks(0, 10, 1, 1), id="chunks of nothing"),
        pytest.param(lambda: FixedChunks(1, -1, 1, 1), id="a log below zero"),
        pytest.param(lambda: FixedChunks(10, 2**31, 10, 10), id="a log above int"),
        pytest.param(lambda: FixedChunks(10, 10, -1, 1), id="a stored size below zero"),
        pytest.param(lambda: FixedChunks(10, 100, 2**30, 1), id="an object above int"),
        pytest.param(lambda: VariableChunks(100, 250, [1, 2]), id="a chunk too few"),
        pytest.param(lambda: VariableChunks(100, 250, [1, 2, 3, 4]), id="a chunk too many"),
        pytest.param(lambda: VariableChunks(100, 0, []), id="none at all"),
        pytest.param(lambda: VariableChunks(100, 250, [5, -1, 5]), id="a size below zero"),
        pytest.param(lambda: VariableChunks(100, 250, [2**30] * 3), id="sizes above int"),
        pytest.param(lambda: plain_chunks(250, 100).chunk(3), id="a chunk behind the last"),
        pytest.param(lambda: VariableChunks(100, 50, [5]).chunk(-1), id="a chunk before all"),
    ],
)
def test_chunks_that_contradict_themselves_are_refused(make: object) -> None:
    """A chunk index that does not cover its log, or ends beyond Java's int, is refused."""
    assert callable(make)
    with pytest.raises(InvalidArgument):
        make()


@pytest.mark.parametrize(
    "original_bytes",
    [
        pytest.param(2**31 - CHUNK_BYTES, id="the last that fits"),
        pytest.param(2**31 - CHUNK_BYTES + 1, id="one byte beyond it"),
        pytest.param(2**31 - 1000, id="a thousand below the end"),
        pytest.param(INT32_MAX - 1, id="the largest that can be cut"),
    ],
)
def test_chunk_size_for_a_long_log_lets_the_plugin_read_its_end(original_bytes: int) -> None:
    """The plugin's computed end of a long log's last chunk stays within 32 bits."""
    chunk_bytes = chunk_bytes_for(original_bytes)
    assert isinstance(chunk_bytes, int)
    assert CHUNK_BYTES // 2 < chunk_bytes <= CHUNK_BYTES
    assert plain_chunks(original_bytes, chunk_bytes).count * chunk_bytes <= INT32_MAX
    assert (chunk_bytes == CHUNK_BYTES) == (original_bytes <= 2**31 - CHUNK_BYTES)


@pytest.mark.parametrize("original_bytes", [INT32_MAX, 2**31, 2**40])
def test_log_that_the_plugin_could_not_read_whole_is_a_finding(original_bytes: int) -> None:
    """A log that no chunk size makes readable for the plugin is a finding."""
    assert_finding(chunk_bytes_for(original_bytes), LayoutFault.TOO_LARGE)
    assert chunk_bytes_for(100, 7) == 7
