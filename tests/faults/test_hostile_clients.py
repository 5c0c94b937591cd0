"""`rlmm serve` beside clients that send what they like: the short form of `bench hostile`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bench.hostile import GROWTH_MIB_MAX, shapes
from bench.hostile_attackers import attack_for_pieces
from bench.hostile_ground import Watcher, served

if TYPE_CHECKING:
    from pathlib import Path

CONNECTIONS = 8
PIECES = 2 * 17
"""Of 256 KiB, of each connection: two of the largest frames."""
THEN_S = 0.1


@pytest.mark.parametrize("has_tls", [False, True], ids=["plain", "tls"])
def test_hostile_clients_when_all_shapes_have_come_then_the_service_answers_and_has_not_grown(
    tmp_path: Path, *, has_tls: bool
) -> None:
    """Others are answered beside every shape, and none takes more than 64 MiB of memory."""
    growths: dict[str, float] = {}
    with served(tmp_path, has_tls=has_tls) as (process, target):
        watcher = Watcher(process, target)
        for shape in shapes(has_tls=has_tls):
            few = replace(shape, connections=min(shape.connections, CONNECTIONS))
            before = process.resident_bytes
            with watcher.watching() as found:
                asyncio.run(attack_for_pieces(target, few, PIECES * few.connections, THEN_S))
            assert found.failures == [], shape.name
            process.require_running()
            most = max([*found.resident_bytes, process.resident_bytes])
            growths[shape.name] = (most - before) / 2**20
        with watcher.watching() as after:
            watcher.wait_for_both()
        assert after.failures == []
    too_much = {name: size for name, size in growths.items() if size > GROWTH_MIB_MAX}
    assert too_much == {}
