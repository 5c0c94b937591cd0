"""
Cases that the native core and the reference engine both get: what they say must be equal.

Compared are all reports, now and then statistics and answers, and at the end of each group the
state images, which each engine also reads from the other.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from rlmm.base.native_core import EXTENSION
from rlmm.errors import ImageCorrupt
from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import SegmentMetadata
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import build_batch, records_of
from tests.support.fuzzing import cases
from tests.support.records.mutations import mutated, with_sound_crc

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.report import Report
    from rlmm.metadata.shard import Shard
    from tests.support.fuzzing.cases import Case

_TURNS_MAX = 12
_ASKED_EACH = 16
_OFFSETS = (0, 4, 9, 10, 25, 39, INT64_MAX)
_STARTED = tuple(one for one in cases.EVENTS if isinstance(one, SegmentMetadata))
_USERS = tuple({one.id.partition: None for one in _STARTED})
_EPOCHS = tuple({epoch: None for one in _STARTED for epoch, *_ in one.epochs})


def engines() -> tuple[type[PythonShard], type[PythonShard]] | None:
    """Return the class of shards on the native core, and the reference; `None` without the core."""
    if find_spec(EXTENSION) is None:
        return None
    from rlmm.metadata.native_shard import NativeShard  # noqa: PLC0415 - it may not be installed

    return NativeShard, PythonShard


class Pair:
    def __init__(self, rng: Random, case: Case) -> None:
        makes = engines()
        assert makes is not None, "the native core is not built: `make native` builds it"
        self.makes = makes
        self._rng, self._case = rng, case
        self.native, self.reference = (make(cases.METADATA_PARTITION) for make in makes)

    @property
    def position(self) -> int:
        return self.reference.position

    def same(self, what: str, ask: Callable[[Shard], Any]) -> Any:
        native, expected = ask(self.native), ask(self.reference)
        assert native == expected, f"{what} differs: {native!r}, should be {expected!r}"
        return expected

    def apply(self, data: bytes) -> None:
        rng, counts = self._rng, self._case.counts
        begin = self.position
        end = rng.choice((None, None, None, begin + 4))
        given = RecordSet(cases.METADATA_PARTITION, data, end)
        is_gapless = rng.random() < 0.1
        for shard in (self.native, self.reference):
            shard.holes_are_damage = is_gapless
        for _ in range(_TURNS_MAX):
            report = self._turn(given, rng.choice((None, None, None, 1, 3)))
            counts["both: events applied"] += report.tally.applied
            if report.complete or self.position == INT64_MAX:
                return
            damage = report.damage
            if damage is not None:
                counts["both: damage"] += 1
                behind = min(self.position + rng.randint(1, 9), INT64_MAX)
                self.same("what is set aside", methodcaller("set_aside", damage, data, behind))

    def _turn(self, given: RecordSet, max_events: int | None) -> Report:
        passed: tuple[list[Any], list[Any]] = ([], [])
        native = self.native.apply(given, max_events, passed=passed[0])
        expected = self.reference.apply(given, max_events, passed=passed[1])
        is_paused = not expected.complete and expected.damage is None
        for name in type(expected).__slots__:
            if name == "last_batch" and is_paused:
                continue  # in a run of small batches the reference has found later ones
            found, wanted = getattr(native, name), getattr(expected, name)
            assert found == wanted, f"report: {name} is {found!r}, should be {wanted!r}"
        assert passed[0] == passed[1], "the events that are passed on differ"
        return expected

    def ask(self) -> None:
        rng = self._rng
        user, epoch, offset = rng.choice(_USERS), rng.choice(_EPOCHS), rng.choice(_OFFSETS)
        self.same("statistics", methodcaller("statistics"))
        for asked in (
            methodcaller("row_for", user, epoch, offset),
            methodcaller("rows_for", [(user, epoch, one) for one in _OFFSETS]),
            methodcaller("next_segment_with_txn_index", user, epoch, offset),
            methodcaller("segments_of_epoch", user, epoch),
            methodcaller("page", user, epoch, limit=2),
            methodcaller("epoch_view", user, epoch),
            methodcaller("partition_delete", user),
        ):
            self.same(str(asked), asked)
        self._case.counts["both: asked"] += 1

    def compare_state(self) -> None:
        self.ask()
        image = self.same("the state image", methodcaller("image"))
        self.same("validate()", methodcaller("validate"))
        assert self.native.validate() == []
        self.native = self.makes[0].from_image(image)
        assert self.native.image() == image, "the image reads back as another state"


def _run(rng: Random, case: Case, count: int, make: Callable[[int], bytes]) -> None:
    shards = Pair(rng, case)
    for number in range(count):
        shards.apply(case.begin(make(shards.position)))
        if number % _ASKED_EACH == 0:
            shards.ask()
        if shards.position > INT64_MAX // 2:
            shards.compare_state()
            shards = Pair(rng, case)
    shards.compare_state()


def events(rng: Random, case: Case, count: int) -> None:
    """Feed damaged record values in sound batches."""

    def make(position: int) -> bytes:
        base_offset = position + rng.choice((0, 0, 0, 3))
        values = [cases.value_or_tombstone(rng) for _ in range(rng.randint(1, 4))]
        return build_batch(records_of(values, base_offset), base_offset)

    _run(rng, case, count, make)


def record_sets(rng: Random, case: Case, count: int) -> None:
    """Feed record sets that are cut, spliced, doubled, or changed in a few bytes."""
    kept: list[bytes] = []

    def make(position: int) -> bytes:
        sound = cases.sound_batches(rng, position)
        others = [*kept[-4:], sound]
        kept.append(sound)
        if rng.random() < 0.1:
            return b"".join(rng.choices(others, k=rng.randint(2, 6)))
        data = mutated(rng, sound, others)
        return with_sound_crc(data) if rng.random() < 0.6 else data

    _run(rng, case, count, make)


def images(rng: Random, case: Case, count: int) -> None:
    """Feed damaged images of user partitions."""
    shards = Pair(rng, case)
    for event in rng.choices(cases.EVENTS, k=80):
        shards.same("a verdict", methodcaller("apply_event", event))
    parts: list[bytes] = [part for part in map(shards.reference.partition_image, _USERS) if part]
    for number in range(count):
        sound = rng.choice(parts)
        if rng.random() < 0.7:
            changed = bytearray(sound)
            changed[rng.randrange(len(changed))] = rng.choice((0, 1, 2, 0xFF, rng.randrange(256)))
            data = bytes(changed)
        else:
            data = mutated(rng, sound, parts)
        case.begin(data)
        taken = shards.same("an image", partial(_imported, data))
        is_taken = not isinstance(taken, str)
        case.counts[f"both: image {'taken' if is_taken else 'refused'}"] += 1
        if is_taken:
            read = shards.same("its image", methodcaller("partition_image", taken))
            assert read == data, "an image is taken that no engine writes"
        if number % _ASKED_EACH == 0:
            shards.ask()
    shards.compare_state()


def _imported(image: bytes, shard: Shard) -> TopicIdPartition | str:
    try:
        return shard.import_partition(image)
    except ImageCorrupt as error:
        return str(error)


KINDS: dict[str, tuple[Callable[[Random, Case, int], None], int]] = {
    "events on both engines": (events, 4),
    "record sets on both engines": (record_sets, 4),
    "images on both engines": (images, 2),
}
