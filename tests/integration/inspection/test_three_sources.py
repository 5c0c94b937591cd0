"""One history, three sources, the same answers: service, folders and, with a broker, a topic."""

from __future__ import annotations

import asyncio
import json
import shutil
import tarfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.replay import PartitionReplay
from rlmm.log.files.files_log import FilesLog
from rlmm.metadata.verdicts import APPLIED, DUPLICATE, Applied, Rejected, RejectReason, Remark
from rlmm_demo.world.service import DemoService
from tests.support.cli.every_question import (
    OF_CLUSTER,
    WITHOUT_QUESTION,
    questions,
    reading_commands,
)
from tests.support.cli.json_schemas import require_valid
from tests.support.cli.shared_history import NOW_MS, PLACES, SharedHistory, write_folder
from tests.support.cli.state_commands import (
    MAY_DIFFER,
    RESTORED,
    called,
    stop_the_clock,
    told,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlmm.metadata.verdicts import Verdict
    from tests.support.cli.every_question import Question

HISTORY = SharedHistory()
QUESTIONS = questions(HISTORY)
OF_WRITERS = {
    RejectReason.PARTITION_BEING_DELETED,
    RejectReason.PARTITION_WAS_DELETED,
    RejectReason.NOT_THE_COPIER,
    RejectReason.COPIED_BY_ANOTHER,
}
"""Reasons of refusals before an append: no record of a log is refused for them."""
IN_A_BUNDLE = {
    "about.json": {"source": "who was asked", "where": "and where"},
    "status.json": {"kind": "who was asked", "where": "and where"},
    "findings.json": {},
    "partitions.json": {},
    "events.json": {},
    "configuration.json": {},
}
"""Every document of a support bundle, and what may differ in it."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy") / "log"
    asyncio.run(write_folder(folder, HISTORY))
    return folder


@contextmanager
def service_of(copy: Path, base: Path, *, is_restored: bool = False) -> Iterator[list[str]]:
    shutil.copytree(copy, base / "data" / "log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLMM_PUMP_UNDECODABLE_SHARE_MAX", "1")  # poison is what it is about
        if is_restored:
            with DemoService(base / "data", base / "s") as service:
                service.wait_ready()
                service.snapshot(base / "data")
                service.stop()
        with DemoService(base / "data", base / "s") as service:
            patch.undo()
            service.wait_ready()
            yield ["--sidecar", str(base / "s")]
            service.stop()


@pytest.fixture(scope="module")
def sources(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    with service_of(copy, tmp_path_factory.mktemp("s")) as service:
        yield {"service": service, "folders": ["--log-dirs", str(copy)]}


@pytest.fixture(scope="module")
def restored(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    with service_of(copy, tmp_path_factory.mktemp("r"), is_restored=True) as service:
        yield service


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_the_clock(monkeypatch, NOW_MS)


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_command_when_asked_of_each_source_then_answers_are_equal(
    sources: dict[str, list[str]], question: Question
) -> None:
    """The answers of all sources are equal except for the source's name, and fit their schemas."""
    answers = {name: told(*question.words, *flags) for name, flags in sources.items()}
    service, folders = answers["service"], answers["folders"]
    assert service.document is not None
    require_valid(service.document)
    require_valid(folders.document)
    assert without(service.document, MAY_DIFFER) == without(folders.document, MAY_DIFFER)
    assert bool(service.document["items"]) is not question.is_empty
    assert service.error == folders.error == ""
    assert service.exit_code == folders.exit_code < 2


@pytest.mark.parametrize("question", [one for one in QUESTIONS if one.command != "check"], ids=str)
def test_command_when_the_service_was_restored_then_answers_are_those_of_the_log(
    sources: dict[str, list[str]], restored: list[str], question: Question
) -> None:
    """A service restored from a snapshot gives the log's answers, with smaller counts."""
    answers = [told(*question.words, *flags) for flags in (restored, sources["folders"])]
    ours, theirs = (without(one.document, MAY_DIFFER | RESTORED) for one in answers)
    assert ours
    assert ours == theirs
    assert answers[0].exit_code == answers[1].exit_code


def test_support_bundle_when_asked_of_each_source_then_archives_hold_the_same(
    sources: dict[str, list[str]], tmp_path: Path
) -> None:
    """The archives of all sources have equal documents except for the source's name."""
    packed = {}
    for name, flags in sources.items():
        path = tmp_path / f"{name}.tar.gz"
        done = called("support-bundle", "--keep-names", "--file", str(path), *flags)
        assert done.exit_code == 0, done.stderr
        packed[name] = _documents(path)
    assert set(packed["service"]) == set(IN_A_BUNDLE)
    assert packed["service"] == packed["folders"]
    assert packed["service"]["findings.json"]
    assert packed["service"]["events.json"]


def _documents(path: Path) -> dict[str, Any]:
    found = {}
    with tarfile.open(path) as archive:
        for entry in archive:
            name = entry.name.rpartition("/")[2]
            file = archive.extractfile(entry)
            assert file is not None
            found[name] = without(json.loads(file.read()), IN_A_BUNDLE[name])
    return found


def test_questions_when_a_command_looks_at_the_state_then_are_of_every_one() -> None:
    """The questions have each command, and a past moment of each that takes one."""
    asked = {one.command for one in QUESTIONS}
    at = {one.command for one in QUESTIONS if "--at" in one.arguments}
    commands = dict(reading_commands())
    with_cluster = {one.command for one in OF_CLUSTER}
    assert asked | with_cluster | set(WITHOUT_QUESTION) == set(commands)
    assert at == {name for name, takes_moment in commands.items() if takes_moment} - set(
        WITHOUT_QUESTION
    )


async def test_f78_history_when_replayed_then_has_everything_that_can_become_of_an_event(
    tmp_path: Path,
) -> None:
    """The history has every remark, every reason of a refusal, and undecodable records."""
    await write_folder(tmp_path, HISTORY)
    log = await FilesLog.open(tmp_path, is_observer=True)
    verdicts: list[Verdict] = []
    try:
        for place in range(PLACES):
            async for chunk in PartitionReplay(log, place, ReplayEnd(), timeout_s=5).chunks():
                verdicts += [one.verdict for one in chunk.happened()]
    finally:
        await log.close()
    assert APPLIED in verdicts
    assert DUPLICATE in verdicts
    remarks = {one.remark for one in verdicts if isinstance(one, Applied)}
    assert remarks == {None, *Remark} - {Remark.MISPLACED}
    reasons = {one.reason for one in verdicts if isinstance(one, Rejected)}
    assert reasons == set(RejectReason) - OF_WRITERS
    assert sum(not isinstance(one, Applied | Rejected) for one in verdicts) == 1 + 5
