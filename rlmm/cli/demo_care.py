"""
How `rlmm demo` shows the care of a tier: it is verified and audited, the broker's own copies go,
Spark reads from the tier alone, and the metadata is lost and made anew from the objects.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import click

from rlmm.cli.demo_commands import run_command
from rlmm.cli.demo_tiering import (
    BROKER_FOLDER,
    TIER_FOLDER,
    TOPIC,
    clicks,
    spark_settings,
    values_written,
)
from rlmm.errors import EngineFailed, EngineUnfit, RlmmError
from rlmm.planning import LOG_FOLDER, SNAPSHOT_FOLDER
from spark_tiering.engines.session import open_session
from spark_tiering.segments.listing import list_segments

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.cli.demo_service import DemoService

EVENTS_FILE: Final = "rebuilt.jsonl"
_STEP: Final = 97
"""Offsets that are looked up before and after: every so many."""


def show_care(service: DemoService, folder: Path, number: int) -> None:
    """All of it; *service* is killed on the way, and the one that follows it is stopped."""
    show_objects(service.socket, folder, number)
    show_reading(folder, number + 1)
    show_rebuilding(service, folder, number + 2)


def show_objects(socket: Path, folder: Path, number: int) -> None:
    """Verify every object, and compare the bucket with the metadata."""
    click.echo(f"{number}. Is the tier whole, and is nothing in it that nobody needs?\n")
    where = ["--sidecar", str(socket), "--store", str(folder / TIER_FOLDER), "--topic", TOPIC]
    for words in (["tier", "verify", "--deep"], ["tier", "audit"]):
        click.echo(f"$ rlmm {' '.join(words)}")
        click.echo(run_command([*words, *where, "--no-spark"]))


def show_reading(folder: Path, number: int) -> None:
    """Take the broker's rolled segments away, and read all records by Spark."""
    gone_bytes = _forget_local(folder / BROKER_FOLDER)
    click.echo(
        f"{number}. The broker's own copies are deleted: {gone_bytes:,} bytes. Spark reads topic "
        f"{TOPIC} from the tier."
    )
    try:
        opened = open_session(spark_settings(folder))
    except EngineUnfit as error:
        click.echo(f"   Spark cannot run here, so this is left out: {error}\n")
        return
    with closing(opened):
        options = {"store": str(folder / TIER_FOLDER), "subscribe": TOPIC}
        read = opened.spark.read.format("rlmm").options(**options).load()
        found = {
            (row["partition"], row["offset"]): bytes(row["value"])
            for row in read.select("partition", "offset", "value").collect()
        }
    expected = dict(values_written())
    if found != expected:
        msg = f"{len(found)} records were read, {len(expected)} written, or not the same ones: "
        raise EngineFailed(msg + "this is a fault of ours, please report it")
    click.echo(f"   {len(found):,} records, each equal to what was written.\n")


def show_rebuilding(before: DemoService, folder: Path, number: int) -> None:
    """Lose the metadata, and make it anew from the bucket: the same answers."""
    answers = _answers(before)
    before.kill()
    for name in (LOG_FOLDER, SNAPSHOT_FOLDER):
        shutil.rmtree(folder / name, ignore_errors=True)
    click.echo(
        f"{number}. The service is killed, its metadata log and snapshots are deleted. Another one "
        "starts on nothing."
    )
    with type(before)(folder, before.socket) as service:
        service.wait_ready()
        click.echo(f"   Offset 0 of {TOPIC}-0: {_trouble(service)}.\n")
        _rebuild(service.socket, folder)
        after = _answers(service)
        service.stop()
    if after != answers:
        msg = "the rebuilt metadata answers differently: a fault of ours, please report it"
        raise EngineFailed(msg)
    click.echo(f"   The same answers as before: {len(after)} look-ups.")


def _rebuild(socket: Path, folder: Path) -> None:
    metadata = ["--sidecar", str(socket)]
    made = ["--custom-metadata", "remote-size"]
    objects = ["--store", str(folder / TIER_FOLDER), "--no-spark"]
    for flag, said, flags in (
        ("--save", made, [*metadata, *objects]),
        ("--apply", [], metadata),
    ):
        click.echo(f"$ {' '.join(['rlmm tier rebuild', flag, EVENTS_FILE, *said])}")
        words = ["tier", "rebuild", flag, str(folder / EVENTS_FILE), *said, *flags]
        click.echo(run_command(words, finds=flag == "--save"))


def _forget_local(broker: Path) -> int:
    gone_bytes = 0
    for partition in broker.glob(f"{TOPIC}-*"):
        names = [path.name for path in partition.iterdir()]
        for segment in list_segments(names):
            if segment.is_rolled:
                for path in partition.glob(f"{segment.base_offset:020d}.*"):
                    gone_bytes += path.stat().st_size
                    path.unlink()
    return gone_bytes


def _answers(service: DemoService) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for partition in clicks():
        last = service.client.highest_offset(partition, 0)
        assert last is not None, "its copies were finished"
        for offset in range(0, last + 2, _STEP):
            segment = service.client.segment_for(partition, 0, offset)
            found[f"{partition} {offset}"] = None if segment is None else _meaning(segment)
    return found


def _meaning(segment: Any) -> tuple[Any, ...]:
    """What a broker reads by; who wrote the event, and when, is not in the bucket."""
    return (
        segment.id, segment.start_offset, segment.last_offset, segment.size_bytes,
        segment.max_timestamp_ms, segment.epochs, segment.txn_index_empty, segment.state,
    )  # fmt: skip


def _trouble(service: DemoService) -> str:
    try:
        service.client.segment_for(next(iter(clicks())), 0, 0)
    except RlmmError as error:
        return error.code
    return "found"
