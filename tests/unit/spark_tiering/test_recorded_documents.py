"""Documents of every form are written as recorded, and spoiled ones are refused as recorded."""

from __future__ import annotations

import hashlib
import json
import os
import re
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from rlmm.errors import ConfigError, InvalidArgument
from rlmm.metadata.ids import Uuid
from spark_tiering.adopt.journal import AdoptionJournal, AdoptionStep, format_journal, parse_journal
from spark_tiering.copy_job.report import CopyFate, CopyReceipt
from spark_tiering.copy_plan.document import CopyPlanUnreadable
from spark_tiering.copy_plan.document import format_plan as format_copy_plan
from spark_tiering.copy_plan.document import parse_plan as parse_copy_plan
from spark_tiering.copy_plan.reasons import SegmentAction
from spark_tiering.job_registry.claims import Claim
from spark_tiering.job_registry.heartbeats import BeatState, Heartbeat, parse_beat
from spark_tiering.job_registry.job_store import read_record, record_bytes
from spark_tiering.job_registry.records import StopMark
from spark_tiering.layout.findings import LayoutFinding
from spark_tiering.layout.key_ring import parse_key_ring
from spark_tiering.layout.manifest_document import format_manifest, parse_manifest
from spark_tiering.layout.strict_json import HexBytes
from spark_tiering.read_plan.document import ReadPlanUnreadable, checksum_of
from spark_tiering.read_plan.document import format_plan as format_read_plan
from spark_tiering.read_plan.document import parse_plan as parse_read_plan
from spark_tiering.read_plan.plan import PlanSourceKind
from spark_tiering.read_plan.question_document import asked_content, asked_of_content
from spark_tiering.read_plan.tokens import parse_token
from tests.support.stores.recorded_manifests import ENCRYPTION, recorded, zstd_manifest
from tests.support.tier.copy_plans import example_plan
from tests.support.tier.jobs import ORDERS as ORDERS_TOPIC
from tests.support.tier.read_plans import EXAMPLE, FACTS, QUESTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


FOLDER = Path(__file__).parents[2] / "data" / "documents"
REFUSALS = FOLDER / "refusals.json"
BEAT = Heartbeat(7, BeatState.RUNNING, 1_760_000_060_000, "worker-1", 4_321, 1_760_000_000_000)
JOURNAL = AdoptionJournal(
    *ORDERS_TOPIC,
    "cluster-1",
    1,
    AdoptionStep.OPENING,
    "20261119T014512Z-host-4f09a2",
    1_760_000_000_000,
    1_760_000_000_001,
    {"retention.ms": "86400000", "local.retention.bytes": "1"},
    {0: 5, 3: 70},
    "",
)
CLAIM = Claim("20261119T014512Z-host-4f09a2")
RECEIPTS = (
    CopyReceipt(
        "orders", ORDERS_TOPIC.topic_id, 3, Uuid.of(7, 1), 0, 99, CopyFate.FINISHED,
        action=SegmentAction.COPY, log_bytes=2_000, stored_bytes=2_500, requests=6, seconds=0.25,
        offset=12, crc64nvme=HexBytes((255).to_bytes(8)), findings=("an index made anew", "ü"),
    ),
    CopyReceipt(
        "orders", ORDERS_TOPIC.topic_id, 3, Uuid.of(7, 2), 100, 199, CopyFate.LEFT_OPEN,
        "store-failed", "no answer", action=SegmentAction.RESUME,
    ),
)  # fmt: skip


def described_fault(content: bytes) -> str:
    found = parse_manifest(content)
    if isinstance(found, LayoutFinding):
        return found.kind.value
    described = found.described
    return f"described: {described.kind}" if isinstance(described, LayoutFinding) else "read"


def read_plan_fault(content: bytes) -> str:
    found = parse_read_plan(content)
    return found.fault.value if isinstance(found, ReadPlanUnreadable) else "read"


def raised(read: Callable[[bytes], object]) -> Callable[[bytes], str]:
    def outcome(content: bytes) -> str:
        try:
            read(content)
        except (ConfigError, InvalidArgument) as error:
            return type(error).__name__
        return "read"

    return outcome


def with_fingerprint(document: dict[str, Any]) -> None:
    rest = {name: value for name, value in document.items() if name != "fingerprint"}
    compact = json.dumps(rest, separators=(",", ":"), ensure_ascii=False)
    document["fingerprint"] = hashlib.sha256(compact.encode(errors="replace")).hexdigest()


def with_checksum(document: dict[str, Any]) -> None:
    document["checksum"] = checksum_of(document)


WRITTEN: dict[str, Callable[[], bytes]] = {
    "copy-plan.json": lambda: format_copy_plan(example_plan()),
    "read-plan.json": lambda: format_read_plan(EXAMPLE),
    "read-plan-of-manifests.json": lambda: format_read_plan(
        replace(EXAMPLE, kind=PlanSourceKind.MANIFESTS, metadata_topic_id=None)
    ),
    "token.txt": lambda: bytes(EXAMPLE.token, "ascii"),
    "question.json": lambda: asked_content(QUESTION, FACTS, "rlmm-plan-1.AAAA"),
    "sealed.rsm-manifest": lambda: format_manifest(
        replace(zstd_manifest(has_aborted=True), encryption=ENCRYPTION)
    ),
    "beat.json": lambda: record_bytes(BEAT),
    "last-beat.json": lambda: record_bytes(
        structs.replace(BEAT, number=8, state=BeatState.ENDED, ended_by="another job")
    ),
    "journal.json": lambda: format_journal(JOURNAL),
    "claim.json": lambda: record_bytes(CLAIM),
    "pause.json": lambda: record_bytes(StopMark("rlmm tier pause", 1_760_000_000_000)),
    "receipts.jsonl": lambda: b"".join(map(record_bytes, RECEIPTS)),
}

READERS: dict[str, tuple[Callable[[], bytes], Callable[[bytes], str]]] = {
    "copy plan": (
        WRITTEN["copy-plan.json"],
        lambda content: (
            "refused" if isinstance(parse_copy_plan(content), CopyPlanUnreadable) else "read"
        ),
    ),
    "read plan": (WRITTEN["read-plan.json"], read_plan_fault),
    "question of a token": (WRITTEN["question.json"], raised(asked_of_content)),
    "plain manifest": (lambda: recorded("plain"), described_fault),
    "our manifest": (lambda: recorded("tiered-by-us"), described_fault),
    "sealed manifest": (WRITTEN["sealed.rsm-manifest"], described_fault),
    "key ring": (
        lambda: b'{"format": "rlmm-key-ring", "version": 1, "keys": {"key-2026": "key.pem"}}',
        raised(lambda content: parse_key_ring(content, "ring")),
    ),
    "beat": (
        WRITTEN["last-beat.json"],
        lambda content: "refused" if parse_beat(content, 8).host == "unreadable" else "read",
    ),
    "journal": (
        WRITTEN["journal.json"],
        lambda content: "refused" if parse_journal(content) is None else "read",
    ),
    "claim": (
        WRITTEN["claim.json"],
        lambda content: "refused" if read_record(content, Claim) is None else "read",
    ),
}
SEALS = {"copy plan": with_fingerprint, "read plan": with_checksum}
VALUES: dict[str, Any] = {
    "null": None, "true": True, "fraction": 1.0, "text": "x", "empty text": "", "digits": "1",
    "below": -1, "two": 2, "32 bits": 2**31, "64 bits": 2**63, "huge": 10**30, "list": [],
    "list in list": [[1, 2, 3]], "object": {},
}  # fmt: skip
RAW: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "no UTF-8": lambda _: b'{"format": "\xff"}',
    "a list": lambda _: b"[]",
    "a text": lambda _: b'"x"',
    "an empty object": lambda _: b"{}",
    "deep lists": lambda _: b"[" * 100_000,
    "deep objects": lambda _: b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "many values": lambda _: b'{"a":[' + b"0," * 6_000_001 + b"0]}",
    "many digits": lambda _: b'{"version": ' + b"1" * 5_000 + b"}",
    "cut": lambda content: content.rstrip()[:-1],
    "more behind": lambda content: content + b"x",
    "byte order mark": lambda content: b"\xef\xbb\xbf" + content,
    "a name twice": lambda content: content.replace(b"{", b'{"format": 1, "format": 1, ', 1),
    "a name twice inside": lambda content: re.sub(
        rb'"(\w+)": ?(\d+)', rb'"\1":\2,"\1":\2', content
    ),
    "NaN": lambda content: re.sub(rb": ?\d+", b": NaN", content, count=1),
    "infinity": lambda content: re.sub(rb": ?\d+", b": -Infinity", content, count=1),
    "another order": lambda content: json.dumps(
        dict(reversed(json.loads(content).items()))
    ).encode(),
    "indented": lambda content: json.dumps(json.loads(content), indent=3).encode(),
}


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield each place of a document; of a list its first item, and its second if it is a pair."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*path, name))
    elif isinstance(value, list):
        for at, inner in enumerate(value[:2]):
            yield from places(inner, (*path, at))


def spoiled(content: bytes, seal: Callable[[dict[str, Any]], None]) -> Iterator[tuple[str, bytes]]:
    """Yield the document with each place changed in each way and sealed again."""
    loaded = json.loads(content)
    for path in places(loaded):
        name = ".".join(map(str, path))
        for change in (*VALUES, "missing", "a field too many", "half a surrogate"):
            document = deepcopy(loaded)
            inner: Any = document
            for step in path[:-1]:
                inner = inner[step]
            if change in VALUES:
                inner[path[-1]] = VALUES[change]
            elif change == "missing":
                del inner[path[-1]]
            elif change == "half a surrogate":
                inner[path[-1]] = "\ud800"
            elif isinstance(inner[path[-1]], dict):
                inner[path[-1]]["more"] = 1
            else:
                continue
            if change != "half a surrogate":
                seal(document)
            yield f"{name}: {change}", json.dumps(document).encode()


def outcomes(kind: str) -> dict[str, Any]:
    make, outcome_of = READERS[kind]
    content = make()
    seal = SEALS.get(kind, lambda _: None)
    found: dict[str, list[str]] = {}
    for name, damage in RAW.items():
        found.setdefault(outcome_of(damage(content)), []).append(name)
    for name, changed in spoiled(content, seal):
        found.setdefault(outcome_of(changed), []).append(name)
    usual = max(found, key=lambda outcome: len(found[outcome]))
    return {"usual": usual, "changes": len(found.pop(usual)), "others": found}


@pytest.mark.parametrize("name", WRITTEN)
def test_document_when_written_then_has_the_bytes_that_were_recorded(name: str) -> None:
    """A written document has the released version's recorded bytes."""
    file = FOLDER / name
    if os.environ.get("WRITE_GOLDEN"):
        file.write_bytes(WRITTEN[name]())
    assert WRITTEN[name]() == file.read_bytes()


@pytest.mark.parametrize("kind", READERS)
def test_document_when_spoiled_then_is_refused_for_the_recorded_fault(kind: str) -> None:
    """Each spoiled document is refused with the recorded fault, for many values at each place."""
    found = outcomes(kind)
    if os.environ.get("WRITE_GOLDEN"):
        recorded_before = json.loads(REFUSALS.read_bytes()) if REFUSALS.exists() else {}
        text = json.dumps({**recorded_before, kind: found}, indent=1)
        REFUSALS.write_text(f"{text}\n", encoding="utf-8")
    assert found == json.loads(REFUSALS.read_bytes())[kind]


def test_documents_that_were_recorded_when_read_then_are_what_was_written() -> None:
    """The readers give the values from which the recorded documents were written."""
    assert parse_copy_plan((FOLDER / "copy-plan.json").read_bytes()) == example_plan()
    assert parse_read_plan((FOLDER / "read-plan.json").read_bytes()) == EXAMPLE
    assert str(parse_token((FOLDER / "token.txt").read_text())) == EXAMPLE.token
    question, facts, _ = asked_of_content((FOLDER / "question.json").read_bytes())
    assert (question, facts) == (QUESTION, FACTS)
    assert parse_beat((FOLDER / "beat.json").read_bytes(), 7) == BEAT
    assert parse_journal((FOLDER / "journal.json").read_bytes()) == JOURNAL
