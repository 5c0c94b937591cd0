"""Clusters that brokers tell of: which are learned, where they are, and how they come back."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogDamaged, NotReady, RlmmError, WrongCluster
from rlmm.metadata.assignment import Assignment
from rlmm.sidecar.cluster_file import read_learned, write_learned
from rlmm.sidecar.connection_trials import AT_A_TIME_MAX
from tests.support.engines import until
from tests.support.server.learned_clusters import AWAY, Addresses

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from rlmm.engine.engine import Engine

OLD, NEW = "old:9092", "new:9092"


@asynccontextmanager
async def learning(
    folder: Path,
    at: Mapping[str, str],
    *,
    clusters_max: int = 1,
    learned: Mapping[str, str] | None = None,
) -> AsyncIterator[Addresses]:
    """Run a process that learns clusters; *at* and *learned* map addresses and cluster ids."""
    if learned is not None:
        await asyncio.to_thread(write_learned, folder, learned)
    process = Addresses(folder, clusters_max)
    for address, cluster_id in at.items():
        process.put(address, cluster_id)
    async with process.running():
        yield process


def say(process: Addresses, cluster_id: str, bootstrap: str | None = None) -> Engine | RlmmError:
    try:
        return process.clusters.find(cluster_id, bootstrap, may_teach=True)
    except RlmmError as error:
        return error


async def say_until_reached(
    process: Addresses, cluster_id: str, bootstrap: str | None = None, timeout_s: float = 30.0
) -> Engine:
    async with asyncio.timeout(timeout_s):
        while True:
            found = say(process, cluster_id, bootstrap)
            if not isinstance(found, RlmmError) and process.service.is_reached(cluster_id):
                return found
            await asyncio.sleep(0.1)


async def kept(process: Addresses) -> dict[str, str]:
    return await asyncio.to_thread(read_learned, process.folder)


async def test_cluster_when_another_learned_one_is_away_then_learned(tmp_path: Path) -> None:
    """Whose cluster an engine is to follow is known of one that was learned, reached or not."""
    async with learning(tmp_path, {NEW: "green"}, clusters_max=2, learned={"blue": OLD}) as process:
        await until(lambda: "blue" in process.service.engines)
        green = await say_until_reached(process, "green", NEW)
        assert say(process, "blue", OLD) is process.service.engines["blue"] is not green
        assert await kept(process) == {"blue": OLD, "green": NEW}


async def test_address_when_the_cluster_is_found_elsewhere_then_followed(tmp_path: Path) -> None:
    """The service follows a cluster to the address at which it answers now."""
    async with learning(tmp_path, {OLD: "blue"}) as process:
        old = process.at[OLD]
        first = await say_until_reached(process, "blue", OLD)
        old.fault = AWAY
        process.at[NEW] = old  # the same brokers
        process.put(NEW, "blue")
        second = await say_until_reached(process, "blue", NEW, timeout_s=90.0)
        assert second is not first
        assert process.looked("blue") == [OLD, NEW]
        assert await kept(process) == {"blue": NEW}
        assert process.standing().missing == {}


async def test_address_when_the_cluster_moved_meanwhile_then_followed_there(tmp_path: Path) -> None:
    """A restarted service finds its cluster at the address that a broker sends."""
    async with learning(tmp_path, {NEW: "blue"}, learned={"blue": OLD}) as process:
        await until(lambda: "blue" in process.service.engines)
        await say_until_reached(process, "blue", NEW)
        assert await kept(process) == {"blue": NEW}


async def test_address_when_the_engine_reaches_its_cluster_then_ignored(tmp_path: Path) -> None:
    """A hello with another address does not affect a working engine and starts no trial."""
    async with learning(tmp_path, {OLD: "blue", NEW: "blue"}) as process:
        engine = await say_until_reached(process, "blue", OLD)
        opened = list(process.opened)
        for told in (NEW, "nobody:1", "no address", None):
            assert say(process, "blue", told) is engine
            await asyncio.sleep(120)
        assert process.opened == opened
        assert await kept(process) == {"blue": OLD}


async def test_address_when_the_cluster_is_away_shortly_then_no_change(tmp_path: Path) -> None:
    """The engine stays when its brokers are away for seconds."""
    process = Addresses(tmp_path, 1)
    blue = process.at[NEW] = process.put(OLD, "blue")
    async with process.running():
        engine = await say_until_reached(process, "blue", OLD)
        assert say(process, "blue", NEW) is engine
        process.lost = True
        await asyncio.sleep(50)
        process.lost = False
        await asyncio.sleep(100)
        assert process.service.engines["blue"] is engine
        assert process.looked("blue") == [OLD]
        assert blue.fault is None


@pytest.mark.parametrize("told", ["nobody:1", "other:1"], ids=["nobody", "another-cluster"])
async def test_address_when_wrong_amid_an_outage_then_no_change(told: str, tmp_path: Path) -> None:
    """The same engine finds its cluster at the old address after a wrong hello."""
    async with learning(tmp_path, {OLD: "blue", "other:1": "green"}) as process:
        blue = process.at[OLD]
        engine = await say_until_reached(process, "blue", OLD)
        blue.fault = AWAY
        for _ in range(100):
            assert say(process, "blue", told) is engine
            await asyncio.sleep(1)
        assert process.looked("blue") == [OLD, told]
        blue.fault = None
        assert await say_until_reached(process, "blue", told) is engine
        assert await kept(process) == {"blue": OLD}


async def test_cluster_when_its_engine_was_dropped_then_back_when_possible(tmp_path: Path) -> None:
    """A dropped cluster is followed again when that is possible, without a restart or a hello."""
    async with learning(tmp_path, {OLD: "blue"}) as process:
        first = await say_until_reached(process, "blue", OLD)
        await asyncio.sleep(100)
        process.opening = OSError(5, "disk")
        process.failing.put_nowait(LogDamaged("torn"))
        await until(lambda: not process.service.engines)
        with pytest.raises(NotReady, match="blue is not followed now: torn"):
            process.clusters.find("blue", OLD, may_teach=True)
        await asyncio.sleep(10)
        with pytest.raises(NotReady, match=r"blue is not followed now: .*disk"):
            process.clusters.find("blue", OLD, may_teach=True)
        process.opening = None
        await until(lambda: process.service.is_reached("blue"), 62.0)
        assert process.service.engines["blue"] is not first
        assert process.standing().missing == {}


async def test_address_when_told_while_the_old_one_worked_then_tried_later(tmp_path: Path) -> None:
    """The service remembers an address from a hello and tries it when the old one fails."""
    async with learning(tmp_path, {OLD: "blue", NEW: "blue"}) as process:
        old = process.at[OLD]
        first = await say_until_reached(process, "blue", OLD)
        for told in (NEW, "nobody:1", OLD):
            say(process, "blue", told)
        await asyncio.sleep(10)
        assert process.service.engines["blue"] is first
        old.fault = AWAY
        await until(lambda: process.service.is_reached("blue"), 100.0)
        assert await kept(process) == {"blue": NEW}


async def test_cluster_when_its_engine_drops_often_then_back_rarely(tmp_path: Path) -> None:
    """Pauses double up to a minute, however often brokers ask."""
    async with learning(tmp_path, {OLD: "blue"}) as process:
        await say_until_reached(process, "blue", OLD)
        begun = 0
        for _ in range(600):  # five minutes
            if process.service.engines and process.failing.empty():
                process.failing.put_nowait(LogDamaged("torn"))
                begun += 1
            say(process, "blue", OLD)
            await asyncio.sleep(0.5)
        assert 8 <= begun <= 12


@pytest.mark.parametrize("told", [OLD, NEW, None], ids=["as-before", "wrong", "none"])
async def test_cluster_when_its_address_was_taken_then_b(told: str | None, tmp_path: Path) -> None:
    """The service also tries the former address of a cluster, whatever hellos name."""
    async with learning(tmp_path, {OLD: "green"}, learned={"blue": OLD}) as process:
        await until(lambda: "green, not blue" in process.service.missing.get("blue", ""))
        for _ in range(50):
            assert isinstance(say(process, "blue", told), NotReady)
            await asyncio.sleep(0.1)
        assert await kept(process) == {"blue": OLD}
        process.put(OLD, "blue")
        await say_until_reached(process, "blue", told, timeout_s=61.0)


async def test_f100_cluster_when_missing_then_the_process_is_not_ready(tmp_path: Path) -> None:
    """Failure scenario F100: a process that lacks a cluster is not ready and names the reason."""
    async with learning(tmp_path, {OLD: "blue", NEW: "green"}, clusters_max=2) as process:
        for cluster_id, address in (("blue", OLD), ("green", NEW)):
            engine = await say_until_reached(process, cluster_id, address)
            engine.reconcile(Assignment.nothing())
        await until(lambda: process.standing().is_ready)
        process.opening = OSError(30, "read-only")
        process.failing.put_nowait(LogDamaged("torn"))
        await until(lambda: len(process.service.engines) == 1)
        (name,) = {"blue", "green"} - set(process.service.engines)
        assert not process.standing().is_ready
        assert process.standing().missing == {name: "torn"}
        assert f"{name} is not followed now: torn" in process.standing().detail
        await asyncio.sleep(2)
        say(process, name)
        await until(lambda: process.standing().missing == {name: "[Errno 30] read-only"})
        process.opening = None
        (await say_until_reached(process, name)).reconcile(Assignment.nothing())
        await until(lambda: process.standing().is_ready)


async def test_cluster_when_its_log_fails_at_the_start_then_comes_back(tmp_path: Path) -> None:
    """A cluster whose log could not be opened is reported as missing, and returns."""
    await asyncio.to_thread(write_learned, tmp_path, {"blue": OLD})
    process = Addresses(tmp_path, 1)
    process.put(OLD, "blue")
    process.opening = OSError(5, "disk")
    async with process.running():
        await until(lambda: process.standing().missing == {"blue": "[Errno 5] disk"})
        assert not process.standing().is_ready
        with pytest.raises(NotReady, match="disk"):
            process.clusters.find("blue", None, may_teach=False)
        with pytest.raises(NotReady, match="disk"):
            process.clusters.find(None, None, may_teach=False)
        process.opening = None
        await say_until_reached(process, "blue")


async def test_cluster_when_only_told_of_then_the_process_is_ready(tmp_path: Path) -> None:
    """A cluster that is only named in a hello takes no place and does not affect readiness."""
    async with learning(tmp_path, {OLD: "blue", "other:1": "other"}) as process:
        for number in range(300):
            assert isinstance(say(process, f"made-up-{number}", "nobody:1"), NotReady)
            assert isinstance(say(process, f"elsewhere-{number}", "other:1"), RlmmError)
            await asyncio.sleep(0.05)
        assert await kept(process) == {}
        engine = await say_until_reached(process, "blue", OLD)
        engine.reconcile(Assignment.nothing())
        await until(lambda: process.standing().is_ready)
        with pytest.raises(WrongCluster, match="clusters_max = 1"):
            process.clusters.find("other", "other:1", may_teach=True)


async def test_clusters_when_many_are_told_then_few_are_asked_at_a_time(tmp_path: Path) -> None:
    """Few addresses are tried at a time, and a learned cluster waits for none of them."""
    async with learning(tmp_path, {NEW: "blue"}, clusters_max=2, learned={"blue": OLD}) as process:
        await until(lambda: "blue" in process.service.engines)
        for number in range(100):
            say(process, f"made-up-{number}", "nobody:1")
        await say_until_reached(process, "blue", NEW, timeout_s=2.0)
        assert sum(name != "blue" for name, _ in process.opened) == AT_A_TIME_MAX


def is_refused(process: Addresses, cluster_id: str) -> bool:
    try:
        process.clusters.find(cluster_id, OLD, may_teach=True)
    except WrongCluster:
        return True
    except NotReady:
        return False
    return False


async def test_cluster_when_another_answers_then_refused_and_tried_later(tmp_path: Path) -> None:
    """The refusal names the cluster at the address, which is tried again later."""
    async with learning(tmp_path, {OLD: "green"}) as process:
        await asyncio.sleep(0.1)
        with pytest.raises(NotReady, match=OLD):
            process.clusters.find("blue", OLD, may_teach=True)
        await until(lambda: is_refused(process, "blue"))
        with pytest.raises(WrongCluster, match=r"asked for is cluster blue.*green"):
            process.clusters.find("blue", OLD, may_teach=True)
        with pytest.raises(WrongCluster):
            process.clusters.find("blue", OLD, may_teach=False)
        assert process.service.engines == {}
        process.put(OLD, "blue")
        await say_until_reached(process, "blue", OLD)


async def test_hello_without_a_cluster_when_one_is_missing_then_no_guess(tmp_path: Path) -> None:
    """The one that is left is not the only one that is served."""
    async with learning(tmp_path, {OLD: "blue", NEW: "green"}, clusters_max=2) as process:
        await say_until_reached(process, "blue", OLD)
        await say_until_reached(process, "green", NEW)
        process.failing.put_nowait(LogDamaged("torn"))
        await until(lambda: len(process.service.engines) == 1)
        with pytest.raises(WrongCluster, match="must name"):
            process.clusters.find(None, None, may_teach=True)
