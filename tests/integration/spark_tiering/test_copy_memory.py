"""How much memory the copy of a large segment takes, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.repository.tree import ROOT
from tests.support.stores.s3_sink import open_sink

if TYPE_CHECKING:
    from pathlib import Path

MIB = 2**20
MEMORY_BYTES_MAX = 200_000_000
"""What is asked for; above a process that has copied a small segment."""
SHORT_BYTES = 208 * MIB
LONG = [
    pytest.param(2_000_000_000, marks=(pytest.mark.long, pytest.mark.timeout(900)), id="2 GB"),
    pytest.param(SHORT_BYTES, id="short"),
]


def copied(address: str, log_bytes: int, form: str, single_put_bytes: int = 2**30) -> int:
    said = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.support.tier.large_copy_process",
            address,
            str(log_bytes),
            form,
            str(single_put_bytes),
        ],
        cwd=ROOT,
        env={**os.environ, "AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "something"},
        capture_output=True,
        check=True,
        text=True,
    )
    told = json.loads(said.stdout)
    assert told["outcomes"] == ["copied", "copied"], told
    assert told["log_bytes"] == log_bytes // 16_384 * 16_384
    assert told["stored_bytes"] > 0.9 * log_bytes
    memory_bytes: int = told["bytes"]
    return memory_bytes


@pytest.mark.parametrize("log_bytes", LONG)
@pytest.mark.parametrize(
    ("form", "single_put_bytes"),
    [("plain", 2**31), ("plain", 2**26), ("zstd", 2**26)],
    ids=["one request", "parts", "zstd"],
)
def test_f123_large_copy_little_memory(log_bytes: int, form: str, single_put_bytes: int) -> None:
    """A copy to a bucket holds pieces, a chunk and a part in memory, never the segment."""
    with open_sink() as sink:
        assert copied(sink.endpoint, log_bytes, form, single_put_bytes) < MEMORY_BYTES_MAX
        assert len(sink.objects) == 6
        assert not sink.uploads


@pytest.mark.parametrize("log_bytes", [SHORT_BYTES])
@pytest.mark.parametrize("form", ["plain", "zstd"])
def test_f123_large_copy_to_folder_little_memory(tmp_path: Path, log_bytes: int, form: str) -> None:
    """A copy to a folder holds pieces and a chunk in memory, never the segment."""
    assert copied(str(tmp_path / "objects"), log_bytes, form) < MEMORY_BYTES_MAX
