"""`rlmm tier` as people and programs call it: answers, exit codes, and how far a job is."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.ids import TopicIdPartition
from tests.support.cli.tier_command import Command, said_on_stderr, trees
from tests.support.repository import tree
from tests.support.tier.job_folders import JOBS, ORDERS, PAYMENTS, TierPlace

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.usefixtures("bare_environment")


@pytest.fixture
def tier(place: TierPlace) -> Command:
    return Command(place)


def test_commands_when_used_one_after_the_other_then_say_what_was_done(tier: Command) -> None:
    """Plan, run, second run, status and sweep print their results as text."""
    planned = tier.plan()
    assert planned.exit_code == 0
    assert "4 to copy (56.4 KiB" in planned.stdout or "4 to copy" in planned.stdout
    done = tier.run()
    assert done.exit_code == 0, done.output
    assert re.search(r"job \S+: 4 of 4 segments finished", done.stdout)
    assert not said_on_stderr(done)
    again = tier.run()
    assert again.exit_code == 0
    assert "nothing to do" in again.stdout
    status = tier("status", *tier.store)
    assert status.exit_code == 0
    assert "ended" in status.stdout
    swept = tier("sweep", *tier.store)
    assert (swept.exit_code, "unfinished uploads" in swept.stdout) == (0, True)
    tier.place.check_clean()


def test_json_of_every_command_when_read_then_adds_up(tier: Command, tmp_path: Path) -> None:
    """The JSON of every command is one document whose totals are the sums of its rows."""
    plan = json.loads(tier.plan("--output", "json").stdout)
    assert sum(len(one["copies"]) for one in plan["partitions"]) == 4
    report_file = tmp_path / "report.json"
    done = tier.run("--output", "json", report=str(report_file))
    report = json.loads(done.stdout)
    assert json.loads(report_file.read_text()) == report
    assert report["segments"] == {"finished": 4}
    for name in ("logBytes", "storedBytes", "requests"):
        assert report[name] == sum(copy[name] for copy in report["copies"])
    assert report["isFine"] is True
    jobs = json.loads(tier("status", *tier.store, "--output", "json").stdout)["jobs"]
    assert [one["jobId"] for one in jobs] == [report["jobId"]]
    assert jobs[0]["hasReport"]
    swept = json.loads(tier("sweep", *tier.store, "--output", "json").stdout)
    assert swept == {"uploads": []}
    kept = next(key for key in tier.place.objects(JOBS) if key.endswith("report.json"))
    assert json.loads((tier.place.folder / "store" / kept).read_text()) == report


@pytest.mark.parametrize("command", ["plan", "dry-run"])
def test_plan_when_made_then_changes_nothing_that_is_there(tier: Command, command: str) -> None:
    """A plan leaves metadata log and store unchanged, byte for byte."""
    tier.run("--max-objects", "3")
    # The mark of a clean end, and what is kept beside the log, are made anew at each opening.
    before = trees(tier.place)
    result = tier.plan() if command == "plan" else tier.run("--dry-run")
    assert result.exit_code == 0
    assert "3 to copy" in result.stdout
    assert trees(tier.place) == before


@pytest.mark.parametrize("command", ["plan", "dry-run"])
def test_plan_without_an_archive_makes_none(tier: Command, tmp_path: Path, command: str) -> None:
    """A plan without an existing archive treats it as empty and makes neither log nor store."""
    changes = {"embedded": str(tmp_path / "new"), "store": str(tmp_path / "objects")}
    more = () if command == "plan" else ("--dry-run",)
    result = tier("plan" if command == "plan" else "run", *tier.flags(**changes), *more)
    assert result.exit_code == 0, result.output
    assert "4 to copy" in result.stdout
    assert not said_on_stderr(result)
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "objects").exists()


def test_saved_plan_when_run_then_is_carried_out_once(tier: Command, tmp_path: Path) -> None:
    """A saved plan runs exactly once; a second run is refused as stale."""
    file = tmp_path / "plan.json"
    assert tier.plan("--topic", "pay*", save=str(file)).exit_code == 0
    done = tier.run(plan=str(file))
    assert done.exit_code == 0, done.output
    assert {one.id.partition for one in tier.place.check()} == {PAYMENTS}
    before = trees(tier.place)[0]
    again = tier.run(plan=str(file))
    assert again.exit_code == 2
    assert "plan-stale" in again.stderr
    assert trees(tier.place)[0] == before


def test_plan_saved_without_a_log_can_be_carried_out(tier: Command, tmp_path: Path) -> None:
    """A saved plan without an existing log creates only that log, and can be carried out."""
    changes = {"embedded": str(tmp_path / "new"), "store": str(tmp_path / "objects")}
    file = tmp_path / "plan.json"
    planned = tier.plan(save=str(file), **changes)
    assert planned.exit_code == 0
    assert "a new, empty log begins here" in planned.stderr
    assert tier.run(plan=str(file), **changes).exit_code == 0


def test_job_when_paused_by_the_command_then_the_mark_is_where_jobs_look(tier: Command) -> None:
    """`pause` leaves its mark where the named job looks, and refuses an unknown job."""
    tier.run()
    jobs = json.loads(tier("status", *tier.store, "--output", "json").stdout)["jobs"]
    paused = tier("pause", *tier.store, jobs[0]["jobId"])
    assert paused.exit_code == 0
    rows = json.loads(tier("status", *tier.store, "--output", "json").stdout)["jobs"]
    assert rows[0]["isAskedToStop"]
    unknown = tier("pause", *tier.store, "20260101T000000Z-nobody-000000")
    assert (unknown.exit_code, len(said_on_stderr(unknown))) == (2, 1)


def test_flags_when_given_as_variables_then_count_and_give_way_to_a_plan(
    tier: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Environment variables count as flags, and give way to a saved plan."""
    file = tmp_path / "plan.json"
    assert tier.plan(save=str(file)).exit_code == 0
    monkeypatch.setenv("RLMM_TIER_PLAN_TOPIC", "pay*")
    monkeypatch.setenv("RLMM_TIER_RUN_TOPIC", "pay*")
    assert "\n  2 to copy" in tier.plan().stdout
    assert "4 of 4 segments finished" in tier.run(plan=str(file)).stdout


SMALL_WAVES = """
from rlmm.cli.main import main
from spark_tiering.copy_job import request
request.SMALL_UNITS_OF_SLOT = 1
main()
"""
"""`rlmm` that begins four small copies at a time, not hundreds."""


def read_terminal(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""


def test_job_on_a_terminal_when_terminated_then_finishes_its_copies(tmp_path: Path) -> None:
    """On a terminal one line is rewritten; after SIGTERM the job finishes its copies."""
    more = [TopicIdPartition(ORDERS.topic_id, ORDERS.topic, number) for number in (7, 8)]
    partitions = [ORDERS, PAYMENTS, *more]
    place = TierPlace(tmp_path, partitions=partitions)
    ours, theirs = os.openpty()
    flags = Command(place).flags(max_requests_per_s="4")
    with subprocess.Popen(
        [sys.executable, "-c", SMALL_WAVES, "tier", "run", *flags, "--output", "json"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=tree.ROOT,
    ) as process:
        os.close(theirs)
        seen, is_told = b"", False
        while piece := read_terminal(ours):
            seen += piece
            if not is_told and re.search(rb"[123] of 8 segments", seen):
                process.send_signal(signal.SIGTERM)
                is_told = True
        answer, _ = process.communicate(timeout=60)
    os.close(ours)
    report = json.loads(answer)
    assert process.returncode == 1, seen
    assert report["stopped"] == "SIGTERM"
    counts = report["segments"]
    assert counts["finished"] + counts.get("left-open", 0) == counts["not-begun"] == 4
    assert b"\r\x1b[2K" in seen
    assert b"the work in progress is finished first" in seen
    assert b"s left\x1b[2m" not in seen
    assert b"{" not in seen
    assert len(place.check()) == 4
    assert place.run().is_fine
    place.check_clean()


def test_job_without_a_terminal_when_run_then_logs_how_far_it_is(tier: Command) -> None:
    """A job without a terminal logs a first and a last line, without control characters."""
    result = tier.run()
    lines = [json.loads(line)["message"] for line in result.stderr.splitlines()]
    assert lines[0].startswith("0 of 4 segments")
    assert lines[-1].startswith("4 of 4 segments")
    assert len(lines) == 2
    assert "\x1b" not in result.stderr


def test_compacted_partition_when_asked_for_then_is_copied_with_its_holes(tier: Command) -> None:
    """Holes of a compacted partition are copied on request; offline they are damage."""
    log = tier.place.file("00000000000000000120.log")
    content = log.read_bytes()
    log.write_bytes(content[: 1171 * 3] + content[1171 * 4 :])
    for name in ("00000000000000000120.index", "00000000000000000120.timeindex"):
        tier.place.file(name).unlink()
    refused = tier.run()
    assert refused.exit_code == 1, refused.output
    (line,) = said_on_stderr(refused)
    assert "orders-3: 120 to 250 (1 segments" in line
    assert "blocked: log: hole: " in line
    done = tier.run("--compacted")
    assert done.exit_code == 0, done.output
    assert "1 of 1 segments finished" in done.stdout
    assert not said_on_stderr(done)
