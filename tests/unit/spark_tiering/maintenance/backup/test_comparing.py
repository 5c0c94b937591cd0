"""How far a log holds a backup already, and where its records went."""

from __future__ import annotations

from msgspec.structs import replace

from spark_tiering.maintenance.backup.import_ import RUNS_MAX, RestoredOffsets, begun
from spark_tiering.maintenance.backup.rows import BackupRow, LostOffsets

ROWS = [BackupRow(0, offset, 5, None, b"%d" % offset) for offset in (3, 4, 7)]


def there(count: int) -> list[BackupRow | LostOffsets]:
    return [
        BackupRow(0, number, 9, row.key, row.value, row.headers)
        for number, row in enumerate(ROWS[:count])
    ]


def test_begun_when_the_first_records_are_there_then_says_how_many() -> None:
    """The comparison counts the first records that are there, whatever their times."""
    for count in range(4):
        assert begun(iter(ROWS), iter(there(count))) == (count, "")


def test_begun_when_anything_else_is_there_then_says_what() -> None:
    """Another, unreadable or extra record ends the comparison with that reason."""
    other = [*there(1), BackupRow(0, 1, 9, None, b"other")]
    assert "offset 1 holds another record than 4 had" in begun(iter(ROWS), iter(other)).why_not
    assert begun(iter(ROWS), iter([replace(ROWS[0], key=b"k")])).why_not
    assert begun(iter(ROWS), iter([LostOffsets(0, 0, 1, "")])).why_not
    assert "no such" in begun(iter(ROWS[:1]), iter(there(2))).why_not


def test_offsets_when_records_moved_then_stretches_that_moved_together_are_told() -> None:
    """Stretches of moved records are reported, without those that kept their offsets."""
    offsets = RestoredOffsets()
    for place, offset, new in ((0, 0, 0), (0, 1, 1), (0, 5, 2), (0, 6, 3), (0, 9, 4), (1, 4, 4)):
        offsets.add(place, offset, new)
    offsets.close()
    assert (offsets.records, offsets.moved) == (6, 3)
    assert [str(run) for run in offsets.runs] == [
        "metadata partition 0: 5 to 6 became 2 to 3",
        "metadata partition 0: 9 to 9 became 4 to 4",
    ]


def test_offsets_when_very_many_stretches_moved_then_the_first_are_kept() -> None:
    """Of very many moved stretches the first are kept and all are counted."""
    offsets = RestoredOffsets()
    for number in range(RUNS_MAX + 5):
        offsets.add(0, 2 * number + 1, number)
    offsets.close()
    assert (len(offsets.runs), offsets.moved) == (RUNS_MAX, RUNS_MAX + 5)
