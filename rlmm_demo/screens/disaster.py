"""Disaster: screen 8 loses the metadata topic and rebuilds it from the bucket."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm_demo.screens.maps import tier_map
from rlmm_demo.world.records import checksum_of
from spark_tiering.layout.object_names import object_keys

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.screens.stage import DemoScreen, DemoStage
    from rlmm_demo.world.world import DemoWorld

_CLAIM = "The metadata topic is lost: the bucket alone tells everything anew. An orphan is found."
_FILE = "rebuilt.jsonl"
_GONE = "payments"


def show_disaster(stage: DemoStage, world: DemoWorld, facts: DemoFigures) -> None:
    with stage.screen("disaster", _CLAIM) as screen:
        answers = world.answers()
        segments = world.segments()
        world.service.kill()
        screen.command(world.lose_metadata())
        world.before_rebuild()
        saved = _rebuild(screen, world, ["--save", _FILE, "--custom-metadata", "remote-size"])
        lost = _count_of("TIER-METADATA-LOST", saved)
        screen.check(
            f"{lost} of {len(segments)} segments are in the store, and not in the metadata",
            holds=lost == len(segments) > 0,
        )
        _rebuild(screen, world, ["--apply", _FILE])
        world.after_rebuild()
        world.wait_ready()
        screen.check_equal("look-ups have the same answer", answers, world.answers())
        stage.tier_maps.append(tier_map("metadata rebuilt", world, facts))
        expected = facts.expected(world)
        _, rows = world.read_all(expected.records)
        read = checksum_of(rows)
        screen.check(
            f"{world.reader} reads {read.records:,} records from offset 0, checksum {read.text}",
            holds=read.text == expected.text,
        )
        _plant(world, segments[0])
        audited = _audit(screen, world)
        screen.check("the audit names the planted orphan", holds=_names(audited))


def _show(screen: DemoScreen, world: DemoWorld, words: list[str]) -> None:
    flag, _ = world.metadata_flags()
    screen.command(f"rlmm {' '.join(words)} {flag} ...")


def _rebuild(screen: DemoScreen, world: DemoWorld, words: list[str]) -> str:
    is_saving = "--save" in words
    _show(screen, world, ["tier", "rebuild", *words, *(["--store", "..."] if is_saving else [])])
    placed = [str(world.folder / _FILE) if word == _FILE else word for word in words]
    store = [*world.store.flags(), "--no-spark"] if is_saving else []
    text = world.run(["tier", "rebuild", *placed], *world.metadata_flags(), *store, finds=is_saving)
    screen.tell(text.strip().splitlines()[-1])
    return text


def _count_of(code: str, text: str) -> int:
    found = re.search(rf"{code} \((\d+)\)", text)
    return 0 if found is None else int(found[1])


def _plant(world: DemoWorld, beside: SegmentMetadata) -> None:
    """Store the objects of a deleted topic, as a deletion that died leaves them."""
    gone = TopicIdPartition(Uuid(b"a topic of once."), _GONE, 0)
    nobodys = SegmentId(gone, Uuid(b"nobody knows it."))
    known = object_keys(beside.id, beside.start_offset, "")
    for kind, key in object_keys(nobodys, beside.start_offset, "").items():
        world.store.copy(known[kind], key)
    world.abandon(gone)


def _names(audited: str) -> bool:
    _, found, behind = audited.partition("TIER-ORPHAN (1)")
    return bool(found) and _GONE in next(iter(behind.splitlines()[1:]), "")


def _audit(screen: DemoScreen, world: DemoWorld) -> str:
    # No copy runs beside the demonstration, and the orphan was planted a moment ago.
    words = ["tier", "audit", "--min-age", "1ms"]
    _show(screen, world, [*words, "--store", "..."])
    # Of the topic itself: a service beside a broker has what that broker leads and follows.
    text = world.run(words, *world.metadata_flags(), *world.store.flags(), "--no-spark", finds=True)
    lines = text.splitlines()
    at = next((number for number, line in enumerate(lines) if "TIER-ORPHAN" in line), 0)
    screen.tell("\n".join(lines[at : at + 2]))
    return text
