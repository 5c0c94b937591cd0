"""Files of lines as they were released: written byte for byte, and judged as before."""

from __future__ import annotations

import copy
import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import ConfigError
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.encoding import encode
from rlmm.metadata.ids import Uuid
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.audit.object_set_verdict import OrphanProof, SetVerdict
from spark_tiering.maintenance.audit.unknown_sets import (
    UnknownObjectSet,
    format_head,
    format_loose,
    read_list,
)
from spark_tiering.maintenance.backup.files import open_backup, writing
from spark_tiering.maintenance.backup.rows import BackupExtent, BackupHeader, BackupRow, LostOffsets
from spark_tiering.maintenance.json_lines import spaced_line
from spark_tiering.maintenance.rebuild.apply import open_events
from spark_tiering.maintenance.rebuild.document import (
    EventsFileHeader,
    end_fields,
    entry_fields,
    entry_of,
    head_fields,
)
from tests.support.builders import started, tp
from tests.support.repository.tree import ROOT
from tests.support.stores.segment_objects import whole_segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DOCUMENTS = ROOT / "tests" / "data" / "documents"
IDENTITY = LogIdentity("cluster", Uuid(bytes(16)), 3)
HEADER = BackupHeader(
    IDENTITY, {0: BackupExtent(0, 9), 2: BackupExtent(5, 9)}, {1: "its disk is gone"}
)
ROWS: list[BackupRow | LostOffsets] = [
    BackupRow(0, 3, 77, None, encode(started("a"))),
    BackupRow(2, 5, -1, b"key", None, (("ü\n", b"\xff"), ("h", None))),
    BackupRow(2, 6, 5, b"", b"junk"),
    LostOffsets(2, 7, 9, "bad crc: ß"),
]
SEGMENT = whole_segment(
    1, 10, 99, epochs={0: 10, 2: 50}, custom_metadata=b"\1\0\2\xc8\1", max_timestamp_ms=77
)
HEAD = EventsFileHeader("s3://bückët", "tier/", "remote-size", IDENTITY, 5, {"missing": 1})
ORPHANS = [
    UnknownObjectSet(
        tp(), Uuid(bytes(15) + b"\1"), 120, "tier/", (ObjectKind.LOG, ObjectKind.INDEXES), 15_042,
        1_700_000_000_000, None, SetVerdict.ORPHAN, OrphanProof.SEGMENT_DELETED, "it is döne",
    ),
    UnknownObjectSet(
        tp("payments", 0), Uuid(bytes(15) + b"\2"), 0, "", tuple(ObjectKind), 7, 5, 99,
        SetVerdict.ORPHAN, OrphanProof.SEGMENT_DELETED, "",
    ),
]  # fmt: skip


def write_backup(path: Path) -> None:
    with writing(path, HEADER) as into:
        for row in ROWS:
            into.add(row)


def write_events(path: Path) -> None:
    lines = [
        spaced_line(head_fields(HEAD)),
        *map(spaced_line, entry_fields(entry_of(SEGMENT), "tier/")),
    ]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    path.write_bytes(b"".join([*lines, spaced_line(end_fields(2, digest))]))


def write_orphans(path: Path) -> None:
    path.write_text("".join([format_head("s3://b", 5), *map(format_loose, ORPHANS)]))


def read_backup(path: Path) -> object:
    backup = open_backup(path)
    return backup.header, list(backup.rows())


def read_events(path: Path) -> object:
    events = open_events(path)
    return events.head, list(events.entries())


def read_orphans(path: Path) -> object:
    with path.open() as lines:
        return list(read_list(lines, "list", "s3://b", ("tier/", "")))


FORMS: dict[str, tuple[Callable[[Path], None], Callable[[Path], object], object]] = {
    "backup.jsonl": (write_backup, read_backup, (HEADER, ROWS)),
    "rebuild.jsonl": (write_events, read_events, (HEAD, [entry_of(SEGMENT)])),
    "orphans.jsonl": (write_orphans, read_orphans, ORPHANS),
}
VALUES: list[Any] = [None, "", "x", 0, -1, 5, 1.5, 2**63, True, [], [[]], [["x"]], {}, {"x": 1}]


@pytest.mark.parametrize("name", FORMS)
def test_file_when_written_then_is_that_of_before_byte_for_byte(name: str, tmp_path: Path) -> None:
    """A written file equals the recorded one byte for byte, for the released version."""
    write, read, expected = FORMS[name]
    write(tmp_path / name)
    assert (tmp_path / name).read_bytes() == (DOCUMENTS / name).read_bytes()
    assert read(DOCUMENTS / name) == expected


@pytest.mark.parametrize("name", FORMS)
def test_file_when_a_line_is_spoiled_then_is_judged_as_before(name: str, tmp_path: Path) -> None:
    """The reader judges each spoiled field of each line as before, digests renewed."""
    recorded = json.loads((DOCUMENTS / "accepted-lines.json").read_text())
    assert accepted(name, tmp_path) == recorded[name]


def accepted(name: str, folder: Path) -> dict[str, list[Any]]:
    lines = [json.loads(line) for line in (DOCUMENTS / name).read_bytes().splitlines()]
    found: dict[str, list[Any]] = {}
    for number, line in enumerate(lines):
        for path in paths_of(line):
            for value in ("absent", *VALUES):
                changed = copy.deepcopy(lines)
                change(changed[number], path, value)
                content = sealed(name, changed, is_end=number == len(lines) - 1)
                if changed != lines and is_accepted(name, folder / name, content):
                    field = f"line {number}: {'.'.join(map(str, path))}"
                    found.setdefault(field, []).append(value)
    return found


def is_accepted(name: str, file: Path, content: bytes) -> bool:
    file.write_bytes(content)
    try:
        FORMS[name][1](file)
    except ConfigError as error:
        # The digest of records is over what was read: the line itself is a good one.
        return str(error).endswith("not what was written: its digest differs")
    return True


def paths_of(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if before[-1:] == ("event",) or not isinstance(value, dict | list):
        return
    for name in value if isinstance(value, dict) else range(len(value)):
        yield (*before, name)
        yield from paths_of(value[name], (*before, name))


def change(line: Any, path: tuple[Any, ...], value: object) -> None:
    for name in path[:-1]:
        line = line[name]
    if value == "absent":
        del line[path[-1]]
    else:
        line[path[-1]] = value


def sealed(name: str, lines: list[dict[str, Any]], *, is_end: bool) -> bytes:
    raw = [json.dumps(line).encode() + b"\n" for line in lines]
    field = {"backup.jsonl": "lines_sha256", "rebuild.jsonl": "sha256"}.get(name)
    if field is not None and not is_end:
        lines[-1][field] = hashlib.sha256(b"".join(raw[:-1])).hexdigest()
        raw[-1] = json.dumps(lines[-1]).encode() + b"\n"
    return b"".join(raw)
