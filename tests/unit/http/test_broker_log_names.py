"""Which files of a partition may be read, by name, listing and last stable offset."""

from __future__ import annotations

import pytest

from rlmm.broker_files.sealed_files import WITHOUT_LOG, SealedFiles, is_ever_read, why_not
from tests.support.partitions.segments import example_partition

NAMES = frozenset({*example_partition().contents, "partition.metadata"})
"""Segments from 0, 120 and 251 on; the last is the active one."""
ACTIVE = "its segment is the active one"
ODD = (
    "",
    ".",
    "..",
    "../orders-4/00000000000000000000.log",
    "/etc/passwd",
    "00000000000000000000.log/",
    "./00000000000000000000.log",
    "00000000000000000000.log\0",
    "00000000000000000000.log\n",
    "0000000000000000000.log",
    "000000000000000000000.log",
    "+0000000000000000000.log",
    "\u0660" * 20 + ".log",
    "99999999999999999999.log",
    "00000000000000000000",
    "00000000000000000000.LOG",
    "00000000000000000000.log.deleted",
    "00000000000000000000.log.swap",
    "00000000000000000000.log.cleaned",
    "00000000000000000000.checkpoint",
    ".kafka_cleanshutdown",
    ".lock",
    "meta.properties",
    "recovery-point-offset-checkpoint",
    "remote_log_snapshot",
    "LEADER-EPOCH-CHECKPOINT",
)


def readable(stable: int | None, names: frozenset[str] = NAMES) -> set[str]:
    sealed = SealedFiles(names)
    return {name for name in names if not why_not(sealed.needs(name), stable)}


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_name_when_it_is_no_name_of_a_segment_s_file_then_is_never_read(name: str) -> None:
    """Only a name that matches as a whole is read, whatever the folder holds."""
    assert not is_ever_read(name)
    needs = SealedFiles({*NAMES, name}).needs(name)
    assert needs == "files of this kind are not served"
    assert why_not(needs, 10_000)


def test_files_when_all_is_stable_then_those_of_rolled_segments_are_read() -> None:
    """The active segment is never read; the snapshot at its beginning is that of the one before."""
    assert readable(10_000) == {
        name for name in NAMES if not name.startswith(f"{251:020d}.") or name.endswith(".snapshot")
    }


@pytest.mark.parametrize(
    ("stable", "expected"),
    [(None, set()), (0, set()), (119, set()), (120, {0}), (250, {0}), (251, {0, 120})],
)
def test_segment_when_it_ends_above_the_last_stable_offset_then_is_not_read(
    stable: int | None, expected: set[int]
) -> None:
    """A segment ends where the next one begins, and all of it has to be stable."""
    logs = {name for name in readable(stable) if name.endswith(".log")}
    assert logs == {f"{base:020d}.log" for base in expected}


@pytest.mark.parametrize(
    ("stable", "expected"), [(None, set()), (119, set()), (120, {120}), (251, {120, 251})]
)
def test_snapshot_when_it_is_at_or_below_the_last_stable_offset_then_is_read(
    stable: int | None, expected: set[int]
) -> None:
    """A producer snapshot is readable when its offset is at most the last stable offset."""
    snapshots = {name for name in readable(stable) if name.endswith(".snapshot")}
    assert snapshots == {f"{offset:020d}.snapshot" for offset in expected}


def test_small_files_when_the_last_stable_offset_is_not_known_then_are_not_read() -> None:
    """Small files are not readable while the last stable offset is unknown."""
    small = {"leader-epoch-checkpoint", "partition.metadata"}
    assert small <= readable(0)
    assert readable(None) == set()


def test_index_when_its_log_is_not_there_then_is_not_read() -> None:
    """An index without its log is not readable, because only the log shows the segment's end."""
    name = f"{60:020d}.index"
    assert SealedFiles({*NAMES, name}).needs(name) == WITHOUT_LOG


def test_segment_when_a_log_beyond_all_offsets_follows_then_is_still_the_active_one() -> None:
    """A file with an impossible offset does not seal the segment before it."""
    assert SealedFiles({*NAMES, f"{10**20 - 1}.log"}).needs(f"{251:020d}.log") == ACTIVE


def test_segments_when_others_are_being_deleted_then_end_where_the_next_log_begins() -> None:
    """Names of other forms are no part of a log, and end no segment."""
    names = frozenset({*NAMES, f"{400:020d}.log.deleted", f"{300:020d}.index"})
    assert f"{251:020d}.log" not in readable(10_000, names)
    assert SealedFiles({*NAMES, f"{300:020d}.log"}).needs(f"{251:020d}.log") == 300
