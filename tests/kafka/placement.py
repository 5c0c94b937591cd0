"""Where the partitions of a topic are, and moving them: other replicas, other leaders."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, NamedTuple, Protocol

from aiokafka.errors import KafkaError

from tests.kafka.clients import PAUSE_S, admin
from tests.kafka.process import ProcessFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tests.kafka.login import Login
    from tests.kafka.tools import Tools

    Replicas = Sequence[Sequence[int]]
    """The brokers of each partition, in order; the first one leads."""

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"
DEADLINE_S = 60.0
ANSWER_S = 2.0


class Reachable(Protocol):
    @property
    def login(self) -> Login: ...

    @property
    def tools(self) -> Tools: ...


class Placed(NamedTuple):
    leader: int
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


async def placed(cluster: Reachable, topic: str) -> dict[int, Placed]:
    try:
        async with asyncio.timeout(ANSWER_S), admin(cluster.login) as client:
            (found,) = await client.describe_topics([topic])
    except (KafkaError, TimeoutError):
        return {}  # the client asked a broker that has just gone, or that was stopped
    return {
        one["partition"]: Placed(one["leader"], tuple(one["replicas"]), frozenset(one["isr"]))
        for one in found["partitions"]
    }


async def until_placed(
    cluster: Reachable,
    topic: str,
    is_right: Callable[[Mapping[int, Placed]], bool],
    *,
    deadline_s: float = DEADLINE_S,
) -> Mapping[int, Placed]:
    found: Mapping[int, Placed] = {}
    try:
        async with asyncio.timeout(deadline_s):
            while True:
                found = await placed(cluster, topic)
                if found and is_right(found):
                    return found
                await asyncio.sleep(PAUSE_S)
    except TimeoutError as error:
        raise ProcessFailed(f"{deadline_s:g} s passed, and {topic} is at {found}") from error


async def create_placed(
    cluster: Reachable, topic: str, replicas: Replicas, settings: Mapping[str, str]
) -> None:
    configs = [part for name, value in settings.items() for part in ("--config", f"{name}={value}")]
    where = ",".join(":".join(map(str, one)) for one in replicas)
    how = ("--create", "--topic", topic, "--replica-assignment", where)
    await asyncio.to_thread(cluster.tools.topics, *how, *configs)
    await until_placed(cluster, topic, lambda found: found == _wanted(replicas))


async def move(cluster: Reachable, topic: str, replicas: Replicas, folder: Path) -> None:
    """Give partitions of *topic* other replicas or leaders, and wait until all are in sync."""
    order = folder / "order.json"
    partitions = [
        {"topic": topic, "partition": number, "replicas": list(one)}
        for number, one in enumerate(replicas)
    ]
    order.write_text(json.dumps({"version": 1, "partitions": partitions}))
    how = ("--reassignment-json-file", str(order), "--execute")
    await asyncio.to_thread(cluster.tools.run, REASSIGN, *how)
    wanted = _wanted(replicas)
    found = await until_placed(
        cluster, topic, lambda now: all(now[one][1:] == where[1:] for one, where in wanted.items())
    )
    if any(found[number].leader != where.leader for number, where in wanted.items()):
        how = ("--election-type", "preferred", "--all-topic-partitions")
        await asyncio.to_thread(cluster.tools.run, ELECT, *how)
        await until_placed(cluster, topic, lambda now: now == wanted)


def _wanted(replicas: Replicas) -> dict[int, Placed]:
    return {at: Placed(one[0], tuple(one), frozenset(one)) for at, one in enumerate(replicas)}
