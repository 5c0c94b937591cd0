"""Log folders of brokers by HTTP: lists, reads, refusals and the end."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from rlmm.access.settings import ClientCertificates
from rlmm.broker_files import disk, last_stable_offsets
from rlmm.broker_files.sealed_segments import PIECE_BYTES
from rlmm.errors import LogNotPermitted, LogUnavailable
from tests.integration.http.test_access import bearer, door_of
from tests.integration.http.test_streaming import resident_bytes
from tests.support.builders import tp
from tests.support.engines import until
from tests.support.partitions.broker_folders import (
    ACTIVE,
    CLUSTER,
    FIRST,
    NODE,
    PARTITION,
    SECOND,
    StableOffsets,
    asked,
    serving_folders,
    write_broker,
    write_example,
    write_partition,
)
from tests.support.partitions.segments import example_partition
from tests.support.server.access_files import BOUND, READER, Pki
from tests.support.server.http_servers import BEARER, process_of, showing
from tests.support.virtual_time import leap

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from rlmm.access.authentication import Authenticator
    from rlmm.errors import LogError
    from tests.support.partitions.broker_folders import Broker

CONTENTS = example_partition().contents
LOG = f"{SECOND}.log"
LARGE = 40 * PIECE_BYTES + 17


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_example(tmp_path / "kafka-logs")


@pytest.fixture
def large(tmp_path: Path) -> Path:
    root = write_broker(tmp_path / "large")
    write_partition(root, {f"{FIRST}.log": os.urandom(LARGE), f"{SECOND}.log": b"active"})
    return root


async def test_partitions_when_listed_then_are_those_of_users_with_folders(root: Path) -> None:
    """The list has topic ids, brokers and clusters from the folders, and names unusable folders."""
    for name in ("orders-3-future", "orders-4.abc-delete", "__cluster_metadata-0", "no partition"):
        (root / name).mkdir()
    write_partition(root, partition=tp("__consumer_offsets", 0))
    for name in ("orders-5-stray", "nameless-0", "damaged-0"):
        (root / name).mkdir()
    (root / "damaged-0" / "partition.metadata").write_text("version: 0\ntopic_id: x\n")
    (root / "file-0").write_text("no folder")
    (root / "linked-0").symlink_to(root / "orders-3")
    gone = root.parent / "gone"
    async with serving_folders(root, gone, root.parent) as broker:
        shown = (await broker.client.get("/v1/broker-log/partitions")).shown
    assert shown["folders"] == [{"folder": str(root), "node_id": NODE, "cluster_id": CLUSTER}]
    assert shown["partitions"] == [
        {**asked(root), "partition": PARTITION.partition, "high_watermark": 257}
    ]
    why = {one["place"]: one["why"] for one in shown["unusable"]}
    assert set(why) == {
        str(place)
        for place in (
            root / "damaged-0", root / "nameless-0", root / "orders-5-stray", gone, root.parent,
        )
    }  # fmt: skip
    assert "no topic id" in why[str(root / "damaged-0")]
    assert "meta.properties" in why[str(root.parent)]


async def test_files_when_listed_then_each_says_whether_it_may_be_read(root: Path) -> None:
    """The list has all regular files and marks those that may be read."""
    folder = root / "orders-3"
    (folder / "00000000000000000000.log.deleted").write_bytes(b"gone soon")
    (folder / "deeper").mkdir()
    (folder / "00000000000000000999.log").symlink_to(folder / LOG)
    async with serving_folders(root, teller=StableOffsets(130)) as broker:
        shown = (await broker.client.get("/v1/broker-log/files", **asked(root))).shown
    assert (shown["last_stable_offset"], shown["why"]) == (130, None)
    files = {one["name"]: one for one in shown["files"]}
    assert set(files) == {
        *CONTENTS, "partition.metadata", "00000000000000000000.log.deleted",
    }  # fmt: skip
    status = (folder / LOG).stat()
    assert files[LOG] == {
        "name": LOG,
        "size_bytes": status.st_size,
        "modified_ms": status.st_mtime_ns // 1_000_000,
        "is_readable": False,
        "why": "it reaches to offset 251, stable is what lies below 130",
    }
    assert {name for name, one in files.items() if one["is_readable"]} == {
        f"{FIRST}.log", f"{FIRST}.index", f"{FIRST}.timeindex", f"{SECOND}.snapshot",
        "leader-epoch-checkpoint", "partition.metadata",
    }  # fmt: skip


@pytest.mark.parametrize("trouble", [LogUnavailable("no leader"), LogNotPermitted("no DESCRIBE")])
async def test_files_when_stability_is_unknown_then_unread(root: Path, trouble: LogError) -> None:
    """The list shows names and sizes, and no file is readable, not even a small one."""
    async with serving_folders(root, teller=StableOffsets(trouble)) as broker:
        shown = (await broker.client.get("/v1/broker-log/files", **asked(root))).shown
        assert (shown["last_stable_offset"], shown["why"]) == (None, str(trouble))
        assert len(shown["files"]) == len(CONTENTS) + 1
        assert not [one for one in shown["files"] if one["is_readable"]]
        for name in (f"{FIRST}.log", "leader-epoch-checkpoint", "partition.metadata"):
            answer = await broker.client.get("/v1/broker-log/file", **asked(root, name))
            expected = (503 if trouble.retriable else 502, trouble.code)
            assert (answer.status, answer.code) == expected
            assert str(trouble) in answer.text
        assert broker.served.figures.refused == {"stable-offset-unknown": 3}


async def test_file_when_it_may_be_read_then_is_given_whole_or_in_parts(root: Path) -> None:
    """A file is answered with 200, one range with 206, an empty range with 416, and HEAD agrees."""
    content = CONTENTS[LOG]
    size = len(content)
    async with serving_folders(root) as broker:
        status, headers, body = await broker.file(root, LOG)
        assert (status, body, headers["Accept-Ranges"]) == (200, content, "bytes")
        assert headers["Content-Type"] == "application/octet-stream"
        assert "Content-Range" not in headers
        for said, first, last in (
            ("bytes=0-0", 0, 0),
            (f"bytes={size - 1}-", size - 1, size - 1),
            (f"bytes=100-{size + 5}", 100, size - 1),
            ("bytes=-7", size - 7, size - 1),
        ):
            status, headers, body = await broker.file(root, LOG, said)
            assert (status, body) == (206, content[first : last + 1])
            assert headers["Content-Range"] == f"bytes {first}-{last}/{size}"
            status, headers, body = await broker.file(root, LOG, said, "HEAD")
            assert (status, body, headers["Content-Length"]) == (206, b"", str(last + 1 - first))
        assert broker.served.figures.sent_bytes == size + 1 + 1 + (size - 100) + 7
        for said in (f"bytes={size}-", f"bytes={size + 9}-{size + 10}", "bytes=-0"):
            status, headers, body = await broker.file(root, LOG, said)
            assert (status, headers["Content-Range"]) == (416, f"bytes */{size}")
            assert b'"code": "invalid-argument"' in body
        status, headers, body = await broker.file(root, LOG, "bytes=0-1,4-5")
        assert (status, body) == (200, content)
        status, headers, body = await broker.file(root, LOG, None, "HEAD")
        assert (status, body, headers["Content-Length"]) == (200, b"", str(size))


async def test_file_when_it_is_empty_then_is_given_and_has_no_range(root: Path) -> None:
    """An empty transaction index is answered with length 0 and has no range."""
    (root / "orders-3" / f"{FIRST}.txnindex").touch()
    async with serving_folders(root) as broker:
        status, headers, body = await broker.file(root, f"{FIRST}.txnindex")
        assert (status, body, headers["Content-Length"]) == (200, b"", "0")
        status, headers, _ = await broker.file(root, f"{FIRST}.txnindex", "bytes=0-0")
        assert (status, headers["Content-Range"]) == (416, "bytes */0")


async def test_file_when_it_is_not_sealed_then_that_is_a_named_refusal(root: Path) -> None:
    """The active segment and one above the last stable offset are refused, checked each time."""
    teller = StableOffsets(250)
    async with serving_folders(root, teller=teller) as broker:
        for name in (f"{ACTIVE}.log", LOG, f"{SECOND}.index", f"{ACTIVE}.snapshot"):
            answer = await broker.client.get("/v1/broker-log/file", **asked(root, name))
            assert (answer.status, answer.code) == (409, "not-sealed")
            assert name in answer.text
        assert (await broker.file(root, f"{FIRST}.log"))[0] == 200
        assert broker.served.figures.refused == {"not-sealed": 4}
        assert set(teller.asked) == {PARTITION}


async def test_file_when_it_became_stable_meanwhile_then_is_read_though_an_old_answer_is_kept(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cached last stable offset may permit a read, and a refusal needs a new one."""
    monkeypatch.setattr(last_stable_offsets, "REFUSING_AGE_S", 0.0)
    teller = StableOffsets(130)
    async with serving_folders(root, teller=teller, stable_age_ms_max=1_000_000) as broker:
        assert (await broker.file(root, LOG))[0] == 409
        teller.told = 251
        assert (await broker.file(root, LOG))[0] == 200
        assert (await broker.file(root, f"{FIRST}.log"))[0] == 200
        assert len(teller.asked) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"folder": "/var/kafka-logs"},
        {"folder": "."},
        {"topic_id": "AAAAAAAAAAAAAAAAAAAAyg"},
        {"topic": "others"},
        {"partition": "4"},
        {"name": f"{60:020d}.log"},
        {"name": f"{60:020d}.index"},
        {"name": f"{FIRST}.log.deleted"},
    ],
    ids=["folder", "no-folder", "topic-id", "topic", "partition", "log", "index", "deleted"],
)
async def test_file_when_it_is_not_there_then_told(root: Path, change: dict[str, str]) -> None:
    """An unknown folder, topic, partition or file is a 404."""
    (root / "orders-3" / f"{60:020d}.index").write_bytes(b"its log was deleted before it")
    (root / "orders-3" / f"{FIRST}.log.deleted").write_bytes(b"gone soon")
    async with serving_folders(root) as broker:
        said = {**asked(root, LOG), **change}
        answer = await broker.client.get("/v1/broker-log/file", **said)
        assert (answer.status, answer.code) == (404, "file-absent")
        if "name" not in change:
            del said["name"]
            answer = await broker.client.get("/v1/broker-log/files", **said)
            assert (answer.status, answer.code) == (404, "file-absent")


async def test_folders_when_none_is_configured_then_their_paths_say_so() -> None:
    """The error for a service without log folders differs from the one for a missing file."""
    async with showing(process=process_of()) as client:
        for path in ("partitions", "files", "file"):
            said = {} if path == "partitions" else asked("/x", LOG if path == "file" else None)
            answer = await client.get(f"/v1/broker-log/{path}", **said)
            assert (answer.status, answer.code) == (404, "not-found")
            assert "broker_log.folders" in answer.text


async def test_file_when_it_is_large_then_is_written_in_pieces(large: Path) -> None:
    """A file of 20 MB arrives unchanged, and only some pieces of it are in memory."""
    content = await asyncio.to_thread((large / "orders-3" / f"{FIRST}.log").read_bytes)
    async with serving_folders(large) as broker:
        status, _, body = await broker.file(large, f"{FIRST}.log")
        assert (status, body == content) == (200, True)
        start, end = PIECE_BYTES - 3, 7 * PIECE_BYTES + 11
        status, _, body = await broker.file(large, f"{FIRST}.log", f"bytes={start}-{end}")
        assert (status, body == content[start : end + 1]) == (206, True)


async def begun(broker: Broker, folder: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(*broker.client.server.addresses[0], limit=1_024)
    said = "&".join(f"{name}={value}" for name, value in asked(folder, f"{FIRST}.log").items())
    writer.write(f"GET /v1/broker-log/file?{said} HTTP/1.1\r\nHost: x\r\n{BEARER}\r\n\r\n".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def test_file_when_the_client_does_not_read_then_is_cut_off(large: Path) -> None:
    """The service closes a client that stops reading, and buffers only some pieces for it."""
    async with serving_folders(large, of_http={"slow_client_ms": 100}) as broker:
        before = resident_bytes()
        held = [await begun(broker, large) for _ in range(4)]
        await until(lambda: broker.served.figures.under_way == 0)
        assert resident_bytes() - before < LARGE * 2
        await until(lambda: broker.client.server.figures.connections == 0)
        assert broker.served.figures.sent_bytes < 4 * LARGE
        for _, writer in held:
            writer.close()


@pytest.mark.parametrize("how", ["deleted", "replaced", "shortened", "renamed", "linked"])
async def test_file_when_it_vanishes_then_the_answer_ends_short(large: Path, how: str) -> None:
    """The answer is shorter than announced, and the next request gets 404."""
    path = large / "orders-3" / f"{FIRST}.log"
    content = await asyncio.to_thread(path.read_bytes)

    def change() -> None:
        match how:
            case "deleted":
                path.unlink()
            case "renamed":
                path.rename(f"{path}.deleted")
            case "linked":
                path.rename(large / "elsewhere")
                path.symlink_to(large / "elsewhere")
            case "shortened":
                os.truncate(path, LARGE // 2)
            case _:
                beside = path.with_name("other")
                beside.write_bytes(content)
                beside.replace(path)

    async with serving_folders(large) as broker:
        reader, writer = await begun(broker, large)
        await asyncio.to_thread(change)
        got = await reader.read(-1)
        assert content.startswith(got)
        assert len(got) < LARGE
        writer.close()
        await until(lambda: broker.served.figures.cut_short == {"changed": 1})
        status, _, _ = await broker.file(large, f"{FIRST}.log")
        assert status == (404 if how in {"deleted", "renamed", "linked"} else 200)


async def test_file_when_disk_hangs_then_left(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hanging disk takes a bounded number of threads, and probes are answered."""
    hanging, loop = asyncio.Event(), asyncio.get_running_loop()
    read_piece, stuck = disk.read_piece, []

    def hang(*arguments: object) -> bytes:
        stuck.append(1)
        asyncio.run_coroutine_threadsafe(hanging.wait(), loop).result()
        return read_piece(*arguments)  # type: ignore[arg-type]  # as they come

    monkeypatch.setattr(disk, "read_piece", hang)
    async with serving_folders(large, reads_max=2, read_timeout_ms=60_000) as broker:
        readers = [await begun(broker, large) for _ in range(2)]
        await until(lambda: len(stuck) == 2)
        leap(60)
        for reader, writer in readers:
            assert await reader.read(-1) == b""
            writer.close()
        assert broker.served.figures.cut_short == {"disk": 2}
        asking = asyncio.create_task(broker.client.get("/v1/broker-log/files", **asked(large)))
        await until(lambda: bool(broker.served._turns._places._waiters))
        leap(60)
        answer = await asking
        assert (answer.status, answer.code) == (429, "too-busy")
        assert (await broker.client.get("/livez")).status == 200
        assert len(stuck) == 2
        hanging.set()
        await until(lambda: broker.served._turns._places._value == 2)
        assert (await broker.client.get("/v1/broker-log/files", **asked(large))).status == 200


async def test_reads_when_not_permitted_then_they_are_refused(root: Path, tmp_path: Path) -> None:
    """A reader may read the files, and a role of one broker may not."""
    door = await door_of(tmp_path)
    async with serving_folders(root, of_http={"door": door}) as broker:
        for token, status in ((None, 401), ("wrong-token-0123456789", 401), (BOUND, 403)):
            headers = {} if token is None else bearer(token)
            for path, said in (
                ("partitions", {}), ("files", asked(root)), ("file", asked(root, LOG)),
            ):  # fmt: skip
                answer = await broker.client.get(f"/v1/broker-log/{path}", headers=headers, **said)
                assert (answer.status, answer.code) == (status, "not-permitted")
        async with broker.client.session.get(
            f"{broker.url}/v1/broker-log/file", params=asked(root, LOG), headers=bearer(READER)
        ) as response:
            assert await response.read() == CONTENTS[LOG]


async def test_reads_when_http_is_encrypted_then_they_are_too(root: Path, tmp_path: Path) -> None:
    """With TLS a certificate that has a role reads, and one without a role is refused."""

    def made() -> tuple[Authenticator, ssl.SSLContext, ssl.SSLContext]:
        pki = Pki(tmp_path)
        door = pki.door(pki.settings(ClientCertificates.WANTED), client_names=("DNS:tier=reader",))
        return door, pki.client("tier"), pki.client()

    door, named, nameless = await asyncio.to_thread(made)
    for context, status in ((named, 200), (nameless, 401)):
        async with serving_folders(root, of_http={"door": door, "ssl": context}) as broker:
            found, _, body = await broker.file(root, LOG)
            assert (found, body == CONTENTS[LOG]) == (status, status == 200)


async def test_metrics_when_files_were_served_then_say_so(root: Path) -> None:
    """Bytes and refusals are counted."""
    async with serving_folders(root, teller=StableOffsets(130)) as broker:
        await broker.file(root, f"{FIRST}.log")
        await broker.file(root, LOG)
        await broker.file(root, "nothing")
        await broker.file(root, f"{FIRST}.log", "bytes=999999-")
        metrics = await broker.client.metrics()
    assert metrics["rlmm_broker_log_sent_bytes_total"] == len(CONTENTS[f"{FIRST}.log"])
    assert metrics["rlmm_broker_log_files_total"] == 1
    assert metrics["rlmm_broker_log_files_under_way"] == 0
    refused = {
        reason: metrics[f'rlmm_broker_log_refused_total{{reason="{reason}"}}']
        for reason in ("absent", "not-sealed", "range", "disk")
    }
    assert refused == {"absent": 1, "not-sealed": 1, "range": 1, "disk": 0}
