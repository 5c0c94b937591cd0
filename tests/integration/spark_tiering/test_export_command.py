"""`rlmm tier export`: plans from every source, plans made again, and refused requests."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from rlmm.cli.main import cli
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentState
from rlmm_demo.world.service import DemoService
from spark_tiering.read_plan.plan_files import require_plan
from spark_tiering.read_plan.tokens import parse_token
from spark_tiering.tier_metadata.opening import open_metadata_access
from tests.support.cli.shared_history import START_MS, STEP_MS, SharedHistory, write_folder
from tests.support.cli.tier_command import Command, forget_environment, trees
from tests.support.tier.job_folders import ORDERS, TierPlace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result

REFUSED: dict[str, tuple[list[str], str]] = {
    "no such token": (["--since", "rlmm-plan-1.AAAA"], "no token"),
    "no such file": (["--since", "nowhere.json"], "nowhere.json"),
    "no plan": (["--since", "{log}"], "no frozen plan"),
    "since and from": (["--since", "rlmm-plan-1.AAAA", "--from-offset", "1"], "--from-offset"),
    "token and topic": (["--token", "rlmm-plan-1.AAAA", "--topic", "a"], "--topic"),
    "both beginnings": (["--from-offset", "1", "--from-time", "0"], "say one"),
    "backwards": (["--from-offset", "2", "--to-offset", "1"], "before the beginning"),
    "no range": (["--range", "orders-3"], "orders-3@1000:2000"),
    "range of nothing": (["--range", "orders@1:2"], "names no partition"),
    "range twice": (["--range", "orders-3@1:2", "--range", "orders-3@3:4"], "twice"),
    "manifests and metadata": (["--from-manifests"], "--embedded"),
    "one offset": (["--at", "7"], "PARTITION:7"),
    "both on standard output": (["--save", "-", "--output", "json"], "say one"),
    "check and since": (["--check", "{log}", "--since", "rlmm-plan-1.AAAA"], "--since"),
    "check of no plan": (["--check", "{log}"], "no frozen plan"),
    "file that is there": (["--save", "{log}"], "there already"),
    "token of nothing": (["--token", "{log}"], "no frozen plan"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_contradicting_flags_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command refuses contradicting flags in one line before it asks or makes anything."""
    forget_environment(monkeypatch, tmp_path)
    arguments, why = REFUSED[name]
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(bytes(100))
    flags = ["--embedded", str(tmp_path / "archive"), "--store", str(tmp_path / "store")]
    result = CliRunner().invoke(
        cli, ["tier", "export", *flags, *(one.replace("{log}", str(log)) for one in arguments)]
    )
    assert result.exit_code == 2, result.output
    assert why in result.stderr
    assert "Traceback" not in result.output
    assert sorted(one.name for one in tmp_path.iterdir()) == [log.name]


HISTORY = SharedHistory()


def export(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["tier", "export", *arguments])
    assert result.exit_code == code, result.output
    return result


def codes(result: Result) -> list[str]:
    return [one["code"] for one in json.loads(result.stdout)["findings"]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TierPlace:
    forget_environment(monkeypatch, tmp_path)
    made = TierPlace(tmp_path)
    made.run()
    made.check_clean()
    return made


@pytest.fixture
def flags(place: TierPlace) -> list[str]:
    return ["--embedded", str(place.archive), *Command(place).store]


def test_export_names_stored_objects(place: TierPlace, flags: list[str], tmp_path: Path) -> None:
    """Every key of the plan is an object of the store, and the export changes nothing."""
    before = trees(place)
    result = export(*flags, "--topic", "orders", "--save", str(tmp_path / "plan.json"))
    plan = require_plan(tmp_path / "plan.json")
    assert [one.partition for one in plan.partitions] == [ORDERS]
    rows = list(plan.segments)
    assert [(one.read_first, one.read_last) for one in rows] == [
        (one.start_offset, one.last_offset)
        for one in place.segments()
        if one.id.partition == ORDERS
    ]
    for row in rows:
        for key in (row.log_key, row.indexes_key, row.manifest_key):
            assert (place.folder / "store" / key).is_file(), key
    said = result.stdout
    assert f"{len(rows)} ranges" in said
    assert "tiered up to offset" in said
    assert plan.token in said
    assert "1 of 1 partitions planned" in result.stderr
    assert "partitions planned" not in said
    assert trees(place) == before


def test_export_by_manifests_is_equal(place: TierPlace, flags: list[str], tmp_path: Path) -> None:
    """An export by manifests alone plans the same segments while the metadata is away."""
    export(*flags, "--save", str(tmp_path / "whole.json"))
    shutil.rmtree(place.archive)
    result = export(
        "--from-manifests", *Command(place).store, "--no-spark", "--save", str(tmp_path / "m.json")
    )
    assert "4 of 4 manifests read" in result.stderr
    assert "manifests read" not in result.stdout
    whole, plan = require_plan(tmp_path / "whole.json"), require_plan(tmp_path / "m.json")
    assert [replace(one, txn_index_empty=True) for one in plan.segments] == [
        replace(one, txn_index_empty=True) for one in whole.segments
    ]
    assert plan.kind == "manifests"
    assert plan.positions == {}


def test_export_when_a_manifest_is_damaged_names_it(place: TierPlace, tmp_path: Path) -> None:
    """An export names a damaged manifest; its offsets are a gap with the reason."""
    manifest = min((place.folder / "store").rglob("orders-*/*/*.rsm-manifest"))
    manifest.write_bytes(manifest.read_bytes()[:-20])
    result = export(
        "--from-manifests", *Command(place).store, "--no-spark", "--range", "orders-3@0:10000",
        "--output", "json", "--save", str(tmp_path / "plan.json"), code=1,
    )  # fmt: skip
    assert codes(result) == ["TIER-PLAN-GAP", "TIER-PLAN-GAP", "TIER-PLAN-UNTOLD"]
    (warning,) = require_plan(tmp_path / "plan.json").warnings
    assert manifest.name in warning


def test_export_when_something_is_missing_then_fails_on_request_only(flags: list[str]) -> None:
    """An export with gaps fails only when the caller asks for that exit code."""
    asked = ["--range", "orders-3@0:10000", "--output", "json"]
    export(*flags, *asked)
    result = export(*flags, *asked, "--fail-on-gap", code=1)
    assert codes(result)[-1] == "TIER-PLAN-GAP"
    gap = json.loads(result.stdout)["findings"][-1]["fields"]
    assert gap["reason"] == "not-tiered-yet"
    assert gap["next_offset"] == 10_000
    export(*flags, "--fail-on-gap")


def test_export_to_standard_output_is_the_plan_alone(flags: list[str], tmp_path: Path) -> None:
    """An export prints its plan alone to standard output, and a summary on standard error."""
    result = export(*flags, "--save", "-")
    (tmp_path / "plan.json").write_bytes(result.stdout_bytes)
    plan = require_plan(tmp_path / "plan.json")
    assert plan.token in result.stderr
    again = export(*flags, "--save", "-", "--format", "parquet")
    (tmp_path / "plan.parquet").write_bytes(again.stdout_bytes)
    assert require_plan(tmp_path / "plan.parquet") == plan


def test_export_when_pyarrow_is_missing_then_says_how_to_install_it(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan in Parquet without pyarrow is refused in one line with the way out."""
    monkeypatch.setitem(sys.modules, "spark_tiering.read_plan.parquet", None)
    refused = export(*flags, "--save", str(tmp_path / "plan.parquet"), code=2)
    assert "pip install 'rlmm[spark]', or name a .json" in refused.stderr


def test_export_since_plans_what_is_new(place: TierPlace, flags: list[str], tmp_path: Path) -> None:
    """An export of what is new since a file, or since its token alone, plans only new segments."""
    first, whole = str(tmp_path / "first.json"), str(tmp_path / "whole.json")
    middle = place.segments()[0].last_offset + 1
    export(*flags, "--range", f"orders-3@:{middle}", "--save", first)
    export(*flags, "--topic", "orders", "--save", whole)
    token = require_plan(tmp_path / "first.json").token
    for number, since in enumerate((first, token)):
        file = tmp_path / f"new-{number}.json"
        export(*flags, "--since", since, "--save", str(file))
        new = require_plan(file)
        rows = [*require_plan(tmp_path / "first.json").segments, *new.segments]
        assert rows == list(require_plan(tmp_path / "whole.json").segments)
        assert new.since == token
        again = export(*flags, "--since", str(file), "--output", "json")
        assert json.loads(again.stdout)["sums"]["ranges"] == 0
    assert (tmp_path / "new-0.json").read_bytes() == (tmp_path / "new-1.json").read_bytes()


def test_export_of_a_token_is_equal(place: TierPlace, flags: list[str], tmp_path: Path) -> None:
    """An export of a token makes the same plan byte for byte, whatever happened since."""
    files = {name: tmp_path / f"{name}.json" for name in ("one", "two", "again", "thrice")}
    middle = place.segments()[0].last_offset + 1
    export(*flags, "--range", f"orders-3@:{middle}", "--save", str(files["one"]))
    export(*flags, "--since", str(files["one"]), "--save", str(files["two"]))
    delete_everything(place)
    gone = export(*flags, "--output", "json")
    assert json.loads(gone.stdout)["sums"]["segments"] == 0
    token = require_plan(files["one"]).token
    export(*flags, "--token", token, "--save", str(files["again"]))
    assert files["again"].read_bytes() == files["one"].read_bytes()
    export(*flags, "--token", str(files["two"]), "--save", str(files["thrice"]))
    assert files["thrice"].read_bytes() == files["two"].read_bytes()
    alone = export(*flags, "--token", require_plan(files["two"]).token, code=2)
    assert "--since" in alone.stderr
    both = export(
        *flags, "--token", require_plan(files["two"]).token, "--since", token, "--output", "json"
    )
    assert json.loads(both.stdout)["token"] == require_plan(files["two"]).token


def test_export_of_another_logs_token(place: TierPlace, flags: list[str], tmp_path: Path) -> None:
    """A plan of another cluster, or of manifests alone, cannot be made again, with the reason."""
    export(*flags, "--save", str(tmp_path / "plan.json"))
    token = require_plan(tmp_path / "plan.json").token
    (tmp_path / "other").mkdir()
    other = TierPlace(tmp_path / "other")
    result = export("--embedded", str(other.archive), "--token", token, code=2)
    assert "and this is" in result.stderr
    of_manifests = export(
        "--from-manifests", *Command(place).store, "--no-spark", "--output", "json"
    )
    made = json.loads(of_manifests.stdout)["token"]
    result = export(*flags, "--token", made, code=2)
    assert "no history" in result.stderr


def delete_everything(place: TierPlace) -> None:
    some = place.segments()
    assert place.metadata is not None
    with closing(open_metadata_access(place.metadata)) as metadata:
        for one in some:
            for state in (
                SegmentState.DELETE_SEGMENT_STARTED,
                SegmentState.DELETE_SEGMENT_FINISHED,
            ):
                if one is some[-1] and state is SegmentState.DELETE_SEGMENT_FINISHED:
                    continue
                event = SegmentUpdate(
                    one.id, one.broker_id, one.event_timestamp_ms + 1, one.custom_metadata, state
                )
                metadata.publish(event, 20)


def test_check_names_deleted_segments(place: TierPlace, flags: list[str], tmp_path: Path) -> None:
    """The check of a plan names the segments that were deleted before and after it was made."""
    file = str(tmp_path / "plan.parquet")
    export(*flags, "--save", file)
    fine = export(*flags, "--check", file, "--output", "json")
    assert json.loads(fine.stdout)["ranges"]["there"] == 4
    delete_everything(place)
    result = export(*flags, "--check", file, "--output", "json", code=1)
    assert sorted(codes(result)) == ["TIER-PLAN-SEGMENT-DELETING", *["TIER-PLAN-SEGMENT-GONE"] * 3]
    said = export(*flags, "--check", file, code=1).stdout
    assert said.startswith("0 of 4 ranges")
    in_store = ["--from-manifests", *Command(place).store, "--check", file]
    export(*in_store)
    shutil.rmtree(place.folder / "store" / f"orders-{ORDERS.topic_id}")
    left = export(*in_store, "--output", "json", code=1)
    assert codes(left) == ["TIER-PLAN-SEGMENT-GONE"] * 2


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    base = tmp_path_factory.mktemp("s")
    asyncio.run(write_folder(base / "copy", HISTORY))
    shutil.copytree(base / "copy", base / "data" / "log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLMM_PUMP_UNDECODABLE_SHARE_MAX", "1")
        with DemoService(base / "data", base / "s") as service:
            patch.undo()
            service.wait_ready()
            yield {
                "service": ["--sidecar", str(base / "s")],
                "folders": ["--log-dirs", str(base / "copy")],
            }
            service.stop()


QUESTIONS: dict[str, list[str]] = {
    "everything": [],
    "one topic": ["--topic", "orders"],
    "a range": ["--range", "orders-0@50:1000", "--prefix", "tier/"],
    "offsets": ["--from-offset", "0", "--to-offset", "500"],
    "a window": ["--from-time", str(START_MS), "--to-time", str(START_MS + 20 * STEP_MS)],
    "of the past": ["--at", str(HISTORY.half_way_ms)],
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_f78_export_when_asked_of_each_source_then_plans_are_equal_to_the_byte(
    sources: dict[str, list[str]], question: str, tmp_path: Path
) -> None:
    """Exports of service and folders are equal, and each accepts the other's token."""
    plans = {}
    for name, source in sources.items():
        file = tmp_path / f"{name}.json"
        export(*source, *QUESTIONS[question], "--save", str(file))
        plans[name] = file.read_bytes()
    assert plans["service"] == plans["folders"]
    plan = require_plan(tmp_path / "service.json")
    assert list(plan.segments)
    again = tmp_path / "again.json"
    export(*sources["folders"], "--token", plan.token, "--save", str(again))
    assert again.read_bytes() == plans["service"]


UNMET = {
    "a topic": (["--topic", "orders", "--topic", "ordres"], "ordres"),
    "a partition": (["--range", "orders-3@0:10", "--range", "orders-9@0:10"], "orders-9"),
    "a partition besides": (["--topic", "orders", "--range", "orders-9@0:10"], "orders-9"),
}


@pytest.mark.parametrize("name", UNMET)
@pytest.mark.parametrize("is_by_manifests", [False, True], ids=["metadata", "manifests"])
def test_export_when_something_is_named_that_nobody_knows_then_it_is_told(
    place: TierPlace, flags: list[str], name: str, is_by_manifests: bool
) -> None:
    """An unknown name is reported as a missing one, and the rest is planned."""
    asked, what = UNMET[name]
    source = ["--from-manifests", *Command(place).store, "--no-spark"]
    source = source if is_by_manifests else flags
    result = export(*source, *asked)
    assert f"{what}: asked for, and nothing is known of it" in result.stdout
    export(*source, *asked, "--fail-on-gap", code=1)
    assert "asked for" not in export(*source, "--topic", "ord*", "--fail-on-gap").stdout


def test_export_without_store_keeps_the_prefix(place: TierPlace, tmp_path: Path) -> None:
    """An export by metadata without a store writes keys under the given prefix."""
    file = tmp_path / "plan.json"
    export("--embedded", str(place.archive), "--prefix", "tier/", "--save", str(file))
    plan = require_plan(file)
    assert plan.question.location == ""
    assert all(one.log_key.startswith("tier/") for one in plan.segments)
    assert parse_token(plan.token).asked == b'{"prefix":"tier/"}'
