"""Contents, and parts cut from a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import InvalidArgument
from spark_tiering.stores.content import BytesContent, FileContent, cut, sum_of
from spark_tiering.stores.results import ContentSum

if TYPE_CHECKING:
    from pathlib import Path

CHECK = b"123456789"
CHECK_CRC = 0xAE8B14860A799888
"""The check value of CRC-64/NVME in the catalogues."""


def test_content_of_a_file_when_made_is_that_of_its_bytes(tmp_path: Path) -> None:
    """A file's content has its bytes' checksum, computed once, and is read repeatedly."""
    path = tmp_path / "file"
    path.write_bytes(CHECK)
    content = FileContent(path)
    assert content.sum == BytesContent(CHECK).sum == (9, CHECK_CRC)
    assert sum_of(content.pieces()) == sum_of(content.pieces()) == content.sum
    told = FileContent(tmp_path / "none", ContentSum(1, 2))
    assert told.sum == (1, 2)
    with pytest.raises(FileNotFoundError):
        FileContent(tmp_path / "none")


@pytest.mark.parametrize("part_bytes", [1, 2, 4, 9, 10])
def test_cut_when_pieces_have_any_size_gives_parts_of_one(part_bytes: int) -> None:
    """The cut gives parts of one size except the last, with the same bytes."""
    parts = [bytes(part) for part in cut([b"12", b"", b"3456", b"789"], part_bytes)]
    assert b"".join(parts) == CHECK
    assert {len(part) for part in parts[:-1]} <= {part_bytes}
    assert list(cut([], part_bytes)) == []
    with pytest.raises(InvalidArgument):
        next(cut([CHECK], 0))
