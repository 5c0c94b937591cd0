"""Segments of brokers through their sidecars: the same as in the folder, or a plain reason."""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import ConfigError, LogNotPermitted, LogUnavailable
from spark_tiering.segment_sources import sidecar_http
from spark_tiering.segment_sources.opening import open_source
from spark_tiering.segment_sources.settings import SidecarSourceSettings
from spark_tiering.segment_sources.sidecar import SidecarFiles
from spark_tiering.segment_sources.sidecar_http import SidecarFaultKind
from spark_tiering.segment_sources.survey import survey
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.log_folder import PartitionFolder
from tests.support.engines import until
from tests.support.partitions.broker_folders import (
    ACTIVE,
    CLUSTER,
    FIRST,
    NODE,
    PARTITION,
    SECOND,
    StableOffsets,
    serving_folders,
    write_example,
)
from tests.support.partitions.segments import content_of, inspect_all
from tests.support.server.http_servers import READING, process_of, showing

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.segment_sources.protocol import FoundPartition
    from spark_tiering.segments.findings import SegmentFinding
    from spark_tiering.segments.partition_files import PartitionFiles
    from spark_tiering.segments.segment_parts import SegmentReport
    from tests.support.partitions.broker_folders import Broker

LOG = f"{SECOND}.log"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_example(tmp_path / "kafka-logs")


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    return write_token(tmp_path / "reading.token", READING)


def write_token(path: Path, token: str) -> str:
    path.touch(0o600)
    path.write_text(f"{token}\n")
    return str(path)


def found_at(*brokers: Broker, token_file: str, **options: Any) -> list[FoundPartition]:
    """Return the partitions of the sidecars, of which none is unusable."""
    addresses = tuple(broker.url for broker in brokers)
    source = open_source(SidecarSourceSettings(addresses, token_file=token_file, **options))
    found, unusable = source.partitions()
    source.close()
    assert unusable == []
    return found


async def files_at(broker: Broker, token_file: str) -> SidecarFiles:
    (found,) = await asyncio.to_thread(found_at, broker, token_file=token_file)
    assert isinstance(found.files, SidecarFiles)
    return found.files


async def test_partitions_of_a_sidecar_name_their_broker(root: Path, token_file: str) -> None:
    """A sidecar's partitions say which broker's replica they are."""
    async with serving_folders(root) as broker:
        (found,) = await asyncio.to_thread(found_at, broker, token_file=token_file)
    assert found.partition == PARTITION
    assert (found.origin.node_id, found.origin.cluster_id) == (NODE, CLUSTER)
    assert found.origin.place == f"{broker.url}{root}/orders-3"
    assert found.high_watermark == 257


async def test_segments_through_a_sidecar_are_the_folders(root: Path, token_file: str) -> None:
    """Segments read through a sidecar equal those of the folder in report and bytes."""
    folder = root / "orders-3"

    def copied(files: PartitionFiles) -> tuple[list[SegmentReport], list[bytes | SegmentFinding]]:
        reports = inspect_all(files)
        contents: list[bytes | SegmentFinding] = [
            files.read(f"{base}.log", 0, 1 << 20) for base in (FIRST, SECOND)
        ]
        contents += [
            content_of(files, part, content)
            for report in reports
            for part, content in report.parts.items()
            if part is not SegmentPart.LOG
        ]
        return reports, contents

    async with serving_folders(root) as broker:
        files = await files_at(broker, token_file)
        through = await asyncio.to_thread(copied, files)
        facts = await asyncio.to_thread(files.facts)
    reports, contents = copied(PartitionFolder(str(folder)))
    assert [report.parts for report in through[0]] == [report.parts for report in reports]
    assert [report.findings for report in through[0]] == [report.findings for report in reports]
    assert through[1] == contents
    assert facts == PartitionFolder(str(folder)).facts()


def read_in_another_process(sent: bytes) -> tuple[bytes, int]:
    files = pickle.loads(sent)
    return files.read(LOG, 5, 10), os.getpid()


async def test_sent_files_read_there_without_a_secret(root: Path, token_file: str) -> None:
    """Files sent to another process read there with its own connection and carry no token."""
    async with serving_folders(root) as broker:
        files = await files_at(broker, token_file)
        sent = pickle.dumps(files)
        assert READING.encode() not in sent
        assert READING not in repr(files)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            loop = asyncio.get_running_loop()
            got, pid = await loop.run_in_executor(pool, read_in_another_process, sent)
        content = (root / "orders-3" / LOG).read_bytes()
        assert (got, pid != os.getpid()) == (content[5:15], True)


async def test_connection_when_a_thread_reads_on_then_is_kept_and_after_a_fork_is_not(
    root: Path, token_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread keeps one connection, and a forked process opens its own."""
    async with serving_folders(root) as broker:
        files = await files_at(broker, token_file)
        figures = broker.client.server.figures
        before = figures.accepted

        def read(times: int) -> None:
            for _ in range(times):
                assert len(files.read(LOG, 0, 10)) == 10

        def read_around_a_fork() -> None:
            read(5)
            pid = os.getpid()
            monkeypatch.setattr(os, "getpid", lambda: pid + 1)
            read(5)

        with ThreadPoolExecutor(1) as own:
            await asyncio.get_running_loop().run_in_executor(own, read_around_a_fork)
        assert figures.accepted == before + 2


async def test_connection_when_it_was_closed_meanwhile_then_the_next_read_makes_another(
    root: Path, token_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read over a closed idle connection opens another one without a pause."""
    pauses: list[float] = []
    sleep, readers = time.sleep, set[int]()

    def pause(seconds: float) -> None:  # other threads of the process may pause as they like
        if threading.get_ident() in readers:
            pauses.append(seconds)
        else:
            sleep(seconds)

    monkeypatch.setattr(time, "sleep", pause)
    async with serving_folders(root, of_http={"idle_timeout_ms": 20}) as broker:
        files = await files_at(broker, token_file)
        loop = asyncio.get_running_loop()
        figures = broker.client.server.figures

        def read_twice() -> None:
            readers.add(threading.get_ident())
            files.read(LOG, 0, 10)
            closed = until(lambda: figures.connections == 0, 60)
            asyncio.run_coroutine_threadsafe(closed, loop).result()
            assert len(files.read(LOG, 0, 10)) == 10

        await asyncio.to_thread(read_twice)
        assert pauses == []


async def test_read_when_the_file_ends_gives_fewer_bytes(root: Path, token_file: str) -> None:
    """A read at a file's end returns fewer bytes, of a deleted file none."""
    path = root / "orders-3" / LOG
    content = path.read_bytes()
    async with serving_folders(root) as broker:
        files = await files_at(broker, token_file)

        def reads(*asked: tuple[int, int]) -> list[bytes]:
            return [files.read(LOG, start, size) for start, size in asked]

        size = len(content)
        assert await asyncio.to_thread(
            reads, (size - 3, 10), (size, 1), (size + 9, 1), (0, 0), (0, size), (0, size + 1)
        ) == [content[-3:], b"", b"", b"", content, content]
        await asyncio.to_thread(path.unlink)
        assert await asyncio.to_thread(reads, (0, 10)) == [b""]
        assert await asyncio.to_thread(files.read, "never there", 0, 10) == b""
        await asyncio.to_thread((root / "orders-3").rename, root / "orders-3.x-delete")
        assert await asyncio.to_thread(files.read, f"{FIRST}.log", 0, 10) == b""
        with pytest.raises(ConfigError, match="no partition's folder"):
            await asyncio.to_thread(files.facts)


async def test_unsealed_read_may_be_retried(root: Path, token_file: str) -> None:
    """A read of an active, unstable or undecidable segment may be retried."""
    teller = StableOffsets(130)
    async with serving_folders(root, teller=teller, stable_age_ms_max=1) as broker:
        files = await files_at(broker, token_file)
        for name, why in ((f"{ACTIVE}.log", "active"), (LOG, "stable is what lies below 130")):
            with pytest.raises(LogUnavailable, match=why):
                await asyncio.to_thread(files.read, name, 0, 10)
        assert await asyncio.to_thread(files.last_stable_offset) == 130
        teller.told = LogNotPermitted("this user lacks the right to DESCRIBE the topic")
        with pytest.raises(LogNotPermitted, match="DESCRIBE the topic"):
            await asyncio.to_thread(files.read, f"{FIRST}.log", 0, 10)
        assert await asyncio.to_thread(files.last_stable_offset) is None


@pytest.mark.parametrize(
    ("told", "noted", "expected"), [(130, 257, 130), (251, 200, 200), (251, None, 251)]
)
async def test_survey_when_no_cluster_is_asked_then_the_sidecar_s_word_counts(
    root: Path, token_file: str, told: int, noted: int | None, expected: int
) -> None:
    """Without a cluster the sidecar's facts count, up to the broker's high watermark."""
    checkpoint = root / "replication-offset-checkpoint"
    checkpoint.write_text("0\n0\n" if noted is None else f"0\n1\norders 3 {noted}\n")
    async with serving_folders(root, teller=StableOffsets(told)) as broker:
        source = open_source(SidecarSourceSettings((broker.url,), token_file=token_file))
        (one,), unusable = await asyncio.to_thread(survey, source, None, lambda _: True)
    assert one.source.last_stable_offset == expected
    assert unusable == []
    assert [segment.listed.base_offset for segment in one.source.segments] == [0, 120, 251]


async def test_survey_when_unanswered_names_the_partition(root: Path, token_file: str) -> None:
    """A partition that its sidecar cannot assess is unusable, with the sidecar's reason."""
    teller = StableOffsets(LogNotPermitted("lacks the right to DESCRIBE"))
    async with serving_folders(root, teller=teller) as broker:
        source = open_source(SidecarSourceSettings((broker.url,), token_file=token_file))
        found, (unusable,) = await asyncio.to_thread(survey, source, None, lambda _: True)
    assert found == []
    assert "lacks the right to DESCRIBE" in unusable.why


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Collect pauses instead of waiting."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


async def test_away_sidecar_is_named(root: Path, token_file: str, no_pauses: list[float]) -> None:
    """The source names a silent sidecar and asks the others; with all silent it fails."""
    nobody = "http://127.0.0.1:1"
    async with serving_folders(root) as broker:
        for addresses, count in (((nobody, broker.url), 1), ((nobody,), 0)):
            source = open_source(SidecarSourceSettings(addresses, token_file=token_file))
            if not count:
                with pytest.raises(LogUnavailable, match=r"127\.0\.0\.1:1 did not answer"):
                    await asyncio.to_thread(source.partitions)
                continue
            found, unusable = await asyncio.to_thread(source.partitions)
            assert len(found) == count
            assert [one.place for one in unusable] == [nobody]
    assert len(no_pauses) == 2 * (
        sidecar_http._POLICIES[SidecarFaultKind.UNREACHED].attempts_max - 1
    )


async def test_source_when_a_service_serves_no_folders_then_is_a_mistake(token_file: str) -> None:
    """A sidecar that serves no log folders is a configuration mistake."""
    async with showing(process=process_of()) as client:
        source = open_source(SidecarSourceSettings((client.url,), token_file=token_file))
        with pytest.raises(ConfigError, match="serves no log folders"):
            await asyncio.to_thread(source.partitions)
