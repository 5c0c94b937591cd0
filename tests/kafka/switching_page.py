"""`docs/switching.md`, carried out: its properties and its commands are read from the page."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.kafka.clients import PAUSE_S
from tests.kafka.placement import ELECT
from tests.kafka.process import ProcessFailed
from tests.support.engine.chosen import environ_without_settings
from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.kafka.tools import Tools

PAGE = tree.ROOT / "docs" / "switching.md"
FENCE = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
BROKERS = re.compile(r"broker-1:9092(,broker-\d:9092)*")
SOCKET = "/var/lib/rlmm/rlmm.sock"
PLUGIN = "/opt/rlmm/metadata-manager/*"
HTTP = "localhost:7405"
COMMAND_DEADLINE_S = 120.0
WAITING_DEADLINE_S = 60.0
FOUND = 1


def _blocks(section: str, language: str) -> list[str]:
    (text,) = [
        part.partition("\n")[2]
        for part in PAGE.read_text().split("\n## ")
        if part.partition("\n")[0] == section
    ]
    return [
        line.strip()
        for found, lines in FENCE.findall(text)
        if found == language
        for line in lines.splitlines()
    ]


def properties(section: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in _blocks(section, "properties"))


def commands(section: str) -> list[str]:
    return [line.removeprefix("$ ") for line in _blocks(section, "console")]


@dataclass(frozen=True, slots=True)
class Place:
    """Values for the names in the page's commands, and the finding codes that the page allows."""

    tools: Tools
    bootstrap: str
    plugin: str
    socket: str
    http: str
    may_find: frozenset[str] = frozenset()

    def lines_to_add(self, section: str) -> dict[str, str]:
        said = {SOCKET: self.socket, PLUGIN: self.plugin}
        return {name: said.get(value, value) for name, value in properties(section).items()}

    async def carry_out(self, section: str) -> Mapping[str, str]:
        """Run each command of a section and return their outputs; `ProcessFailed` if one fails."""
        return {line: await self._run(line) for line in commands(section)}

    async def _run(self, line: str) -> str:
        program, *arguments = shlex.split(self._placed(line))
        match program:
            case "rlmm" if arguments[0] == "serve":
                return await self._rlmm("config", "show", *arguments[1:])
            case "rlmm":
                return await self._rlmm(*arguments)
            case "curl":
                await self._until(partial(_is_up, arguments[-1]), line)
                return ""
            case "kafka-topics.sh":
                await self._until(lambda: not self.tools.topics(*arguments[2:]).strip(), line)
                return ""
            case "kafka-leader-election.sh":
                return await asyncio.to_thread(self.tools.run, ELECT, *arguments[2:])
        raise AssertionError(f"nobody carries out {line}")

    def _placed(self, line: str) -> str:
        placed = BROKERS.sub(self.bootstrap, line)
        return placed.replace(SOCKET, self.socket).replace(HTTP, self.http)

    async def _until(self, fact: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(WAITING_DEADLINE_S):
                while True:
                    if await asyncio.to_thread(fact):
                        return
                    await asyncio.sleep(PAUSE_S)
        except TimeoutError as error:
            raise ProcessFailed(f"{WAITING_DEADLINE_S:g} s passed: {what}") from error

    async def _rlmm(self, *arguments: str) -> str:
        environ = environ_without_settings()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "rlmm", *arguments,
            env={**environ, "PYTHONPATH": str(tree.ROOT)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        async with asyncio.timeout(COMMAND_DEADLINE_S):
            said, complaint = await process.communicate()
        if process.returncode == FOUND and self.may_find.issuperset(_found(said)):
            return said.decode()
        if process.returncode != 0:
            words = said.decode() + complaint.decode()
            raise ProcessFailed(f"rlmm {shlex.join(arguments)}: {process.returncode}\n{words}")
        return said.decode()


def _found(said: bytes) -> set[str]:
    items = json.loads(said)["items"]
    return {one["code"] for one in items if one["severity"] != "note"}


def _is_up(address: str) -> bool:
    try:
        with urlopen(f"http://{address}") as answer:
            return bool(answer.status == HTTPStatus.OK)
    except HTTPError:
        return False
