"""Requests cannot read anything outside the configured folders, nor other files in them."""

from __future__ import annotations

import asyncio
import os
import random
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from rlmm.broker_files.sealed_files import is_ever_read
from rlmm.metadata.ids import TopicIdPartition
from rlmm.partition_log.names import parse_folder
from tests.support.builders import tp
from tests.support.partitions.broker_folders import (
    ACTIVE,
    FIRST,
    SECOND,
    TOPIC_ID,
    asked,
    serving_folders,
    write_broker,
    write_example,
    write_partition,
)
from tests.support.server.http_servers import BEARER

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.http.server import HttpServer

SECRET = b"this is nobody's business"
LOG = f"{FIRST}.log"
TRIES = 400
MARKS = (
    "..", "../", "/", "//", "\\", "\0", "\n", "%2e%2e%2f", "%00", ".", "./", "~", "-", "*", "?",
    "#", "0", "99999999999999999999", "٣", "\ud800", "é", " ", ";", "&", "=", "orders", "-3",
    ".log", LOG, "leader-epoch-checkpoint", "etc/passwd", "secret", "x" * 300,
)  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = write_example(tmp_path / "kafka-logs")
    (tmp_path / "secret").write_bytes(SECRET)
    (root / "secret").write_bytes(SECRET)
    hidden = {LOG: SECRET, f"{SECOND}.log": SECRET, f"{ACTIVE}.log": b""}
    write_partition(write_broker(tmp_path / "other"), hidden)
    for topic in ("__cluster_metadata", "__consumer_offsets"):
        write_partition(root, hidden, tp(topic, 0))
    (root / "linked-3").symlink_to(tmp_path / "other" / "orders-3")
    folder = root / "orders-3"
    for name in ("secret", ".hidden", f"{LOG}.deleted", f"{LOG}.swap", f"{ACTIVE}.checkpoint"):
        (folder / name).write_bytes(SECRET)
    (folder / f"{1:020d}.log").symlink_to(tmp_path / "secret")
    (folder / f"{2:020d}.log").mkdir()
    os.mkfifo(folder / f"{3:020d}.log")
    (folder / f"{FIRST}.txnindex").symlink_to("/dev/zero")
    return root


async def said_to(server: HttpServer, target: str) -> bytes:
    reader, writer = await asyncio.open_connection(*server.addresses[0])
    head = f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{BEARER}\r\n\r\n"
    writer.write(head.encode("utf-8", "surrogateescape"))
    async with asyncio.timeout(60):
        got = await reader.read(-1)
    writer.close()
    return got


def odd(rng: random.Random, text: str) -> str:
    mark = rng.choice(MARKS)
    match rng.randrange(5):
        case 0:
            return mark
        case 1:
            return mark + text
        case 2:
            return text + mark
        case 3:
            at = rng.randrange(len(text) + 1)
            return text[:at] + mark + text[at:]
        case _:
            return "".join(rng.choices(MARKS, k=4))


def encoded(rng: random.Random, text: str) -> str:
    plain = text.encode("utf-8", "surrogatepass")
    once = quote(plain, safe="/.-_~")
    return rng.choice([once, quote(once, safe=""), quote(plain, safe="/.\\;:@!*'()é")])


async def test_requests_when_they_say_anything_at_all_then_nothing_else_is_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Odd folders, topics and names are refused, and no other file is opened."""
    opened: set[tuple[str, bool]] = set()
    real_open = os.open

    def watched(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        opened.add((path, dir_fd is not None))
        return real_open(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", watched)
    rng = random.Random(7)
    good = asked(root, LOG)
    async with serving_folders(root) as broker:
        for _ in range(TRIES):
            said = {
                name: odd(rng, text) if rng.random() < 0.4 else text for name, text in good.items()
            }
            query = "&".join(f"{name}={encoded(rng, text)}" for name, text in said.items())
            path = rng.choice(["file", "file", "file", "files", "../broker-log/file", "file/../x"])
            got = await said_to(broker.client.server, f"/v1/broker-log/{path}?{query}")
            assert SECRET not in got
            status = int(got.split(b" ", 2)[1])
            assert status in {200, 400, 404, 409}, got
            if status == 200:
                continue
            assert b'{"error"' in got
        assert (await broker.client.get("/livez")).status == 200
    assert {name for name, is_inner in opened if not is_inner} == {str(root)}
    inner = {name for name, is_inner in opened if is_inner}
    assert {"orders-3", LOG, "partition.metadata"} <= inner
    assert not [name for name in inner if parse_folder(name) is None and not is_ever_read(name)]
    assert not [name for name in inner if "/" in name or name.startswith("__")]


@pytest.mark.parametrize(
    "name",
    [
        "../../secret", "../orders-3/" + LOG, "secret", ".hidden", f"{LOG}.deleted", f"{LOG}.swap",
        f"{ACTIVE}.checkpoint", f"{1:020d}.log", f"{2:020d}.log", f"{3:020d}.log",
        f"{FIRST}.txnindex",
    ],
)  # fmt: skip
async def test_file_when_no_regular_file_then_is_not_there(root: Path, name: str) -> None:
    """Links, folders, pipes and other names are not found, and the service never waits for them."""
    async with serving_folders(root) as broker:
        async with asyncio.timeout(60):
            status, _, body = await broker.file(root, name)
        assert (status, SECRET in body) == (404, False)
        assert b'"file-absent"' in body
        shown = (await broker.client.get("/v1/broker-log/files", **asked(root))).shown
        readable = {one["name"] for one in shown["files"] if one["is_readable"]}
        assert name not in readable


async def test_segment_when_only_a_link_follows_then_is_still_the_active_one(root: Path) -> None:
    """A link behind a segment does not make it a sealed one."""
    (root / "orders-3" / f"{400:020d}.log").symlink_to(root / "orders-3" / LOG)
    (root / "orders-3" / f"{500:020d}.log").mkdir()
    async with serving_folders(root) as broker:
        answer = await broker.client.get("/v1/broker-log/file", **asked(root, f"{ACTIVE}.log"))
        assert (answer.status, answer.code) == (409, "not-sealed")


@pytest.mark.parametrize(
    "partition",
    [
        tp("__cluster_metadata", 0),
        tp("__consumer_offsets", 0),
        TopicIdPartition(TOPIC_ID, "linked", 3),
    ],
    ids=["metadata", "offsets", "link"],
)
async def test_partition_when_it_is_kafka_s_own_or_a_link_then_is_not_there(
    root: Path, partition: TopicIdPartition
) -> None:
    """Kafka's own topics and links to folders are absent files."""
    async with serving_folders(root) as broker:
        for path, name in (("files", None), ("file", LOG)):
            said = asked(root, name, partition)
            answer = await broker.client.get(f"/v1/broker-log/{path}", **said)
            assert (answer.status, answer.code) == (404, "file-absent")


SECRET_TOPICS = ("_schemas", "_confluent-command", "connect-configs", "eu-connect-configs-2")


@pytest.mark.parametrize(
    ("settings", "served"),
    [
        ({}, {"orders"}),
        ({"without_topics": ()}, {"orders", *SECRET_TOPICS}),
        ({"without_topics": (), "topics": ("_schemas", "ord*")}, {"orders", "_schemas"}),
        ({"topics": ("connect-*",)}, set()),
        ({"without_topics": ("o*", "_*")}, set(SECRET_TOPICS[2:])),
    ],
    ids=("defaults", "none-denied", "allowed", "only-secret", "own-list"),
)
async def test_topic_when_it_keeps_passwords_then_only_served_as_the_settings_say(
    tmp_path: Path, settings: dict[str, Any], served: set[str]
) -> None:
    """Topics of Kafka Connect and of schema registries are served only where settings name them."""
    root = write_example(tmp_path / "kafka-logs")
    for topic in (*SECRET_TOPICS, "__consumer_offsets"):
        write_partition(root, {LOG: SECRET, f"{SECOND}.log": b""}, tp(topic, 0))
    async with serving_folders(root, **settings) as broker:
        listed = (await broker.client.get("/v1/broker-log/partitions")).shown["partitions"]
        assert {one["topic"] for one in listed} == served
        for topic in (*SECRET_TOPICS, "__consumer_offsets"):
            place = asked(root, None, tp(topic, 0))
            files = await broker.client.get("/v1/broker-log/files", **place)
            file_at = f"{broker.url}/v1/broker-log/file"
            async with broker.client.session.get(file_at, params={**place, "name": LOG}) as file:
                content = await file.read()
            assert (files.status == 200) == (topic in served), topic
            assert (SECRET in content) == (topic in served), topic


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
async def test_partition_when_its_topic_id_is_none_then_is_of_no_use(root: Path, kind: str) -> None:
    """The file with the topic id is read with the same care: no link and no pipe."""
    path = root / "orders-3" / "partition.metadata"
    path.rename(root / "kept")
    match kind:
        case "link":
            path.symlink_to(root / "kept")
        case "pipe":
            os.mkfifo(path)
        case _:
            path.mkdir()
    async with serving_folders(root) as broker:
        async with asyncio.timeout(60):
            shown = (await broker.client.get("/v1/broker-log/partitions")).shown
        why = {one["place"]: one["why"] for one in shown["unusable"]}
        told = "it does not say its topic's id (partition.metadata)"
        assert (shown["partitions"], why[str(root / "orders-3")]) == ([], told)
        status, _, body = await broker.file(root, LOG)
        assert (status, told.encode() in body) == (404, True)


async def test_folder_when_it_is_a_link_itself_then_is_followed(root: Path, tmp_path: Path) -> None:
    """The configured folder itself may be a link."""
    (tmp_path / "link").symlink_to(root)
    async with serving_folders(tmp_path / "link") as broker:
        status, _, _ = await broker.file(tmp_path / "link", LOG)
        assert status == 200
        status, _, _ = await broker.file(root, LOG)
        assert status == 404
