"""The frame around every job of `rlmm tier`: the report is kept even if the reader stops early."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from rlmm.cli.tier_common.job_context import print_and_keep
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENT = {"deleted": 3}


@pytest.mark.parametrize("output", ["table", "json"])
def test_report_when_its_reader_has_gone_then_is_kept_all_the_same(
    tmp_path: Path, output: str
) -> None:
    """A job whose output goes to `| head -1` still writes its report."""
    file = tmp_path / "report.json"
    gone = BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
    with patch("click.echo", side_effect=gone), pytest.raises(BrokenPipeError):
        print_and_keep(iter(["three"]), DOCUMENT, output, file)
    assert json.loads(file.read_bytes()) == DOCUMENT


def test_report_when_the_disk_of_what_is_printed_is_full_then_that_is_one_line(
    tmp_path: Path,
) -> None:
    """The error is one line, and the report is kept."""
    file = tmp_path / "report.json"
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with patch("click.echo", side_effect=full), pytest.raises(ConfigError) as caught:
        print_and_keep(iter(["three"]), DOCUMENT, "table", file)
    assert str(caught.value) == "standard output: No space left on device"
    assert json.loads(file.read_bytes()) == DOCUMENT
