"""`rlmm serve` as a process, asked by HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import stat
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.builders import segment_id, tp
from tests.support.server.access_files import write_tokens
from tests.support.server.http_servers import ANYWHERE, of
from tests.support.server.serve_process import PLACES, SEGMENTS, fill, serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.server.serve_process import Serving


async def url_of(service: Serving) -> str:
    line = await service.until("health, metrics and API at")
    found = re.search(r"http://\S+", str(line["message"]))
    assert found is not None
    return found.group()


async def get(url: str, token: str = "") -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}

    def ask() -> tuple[int, Any]:
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, headers=headers), timeout=30
            ) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    status, text = await asyncio.to_thread(ask)
    return status, json.loads(text) if text[:1] in {b"{", b"["} else text.decode()


async def test_serve_when_asked_by_http_then_it_is_ready_and_answers_f94(tmp_path: Path) -> None:
    """The service answers from its first log line on and finds the events of the log."""
    await fill(tmp_path)
    async with serving(tmp_path, "--http-listen", ANYWHERE) as service:
        url = await url_of(service)
        status, _ = await get(f"{url}/livez")
        assert status == 200
        assert (await get(f"{url}/startupz"))[0] in {200, 503}
        await service.until_open(PLACES)
        status, shown = await get(f"{url}/readyz")
        assert (status, shown["is_ready"]) == (200, True)
        partition = tp(partition=3)
        segment = segment_id("s3", partition)
        query = "&".join(
            f"{name}={value}" for name, value in of(partition, segment_id=segment.uuid).items()
        )
        assert (await get(f"{url}/v1/segment?{query}"))[0] == 401
        token = (tmp_path / "rlmm-data/http.token").read_text().strip()
        status, shown = await get(f"{url}/v1/segment?{query}", token)
        assert (status, shown["segment"]["state"]) == (200, "COPY_SEGMENT_FINISHED")
        _, text = await get(f"{url}/metrics")
        assert f'rlmm_user_partitions{{cluster="files"}} {SEGMENTS}.0' in text
        assert "rlmm_sidecar_connections_max" in text
        assert 'rlmm_log_lines_total{level="info"}' in text
        assert await service.end(signal.SIGTERM) == 0


async def test_serve_when_its_http_address_is_in_use_then_it_ends(tmp_path: Path) -> None:
    """A busy port is a refusal of the configuration, before any log is opened."""
    async with serving(tmp_path, "--http-listen", ANYWHERE) as first:
        address = (await url_of(first)).removeprefix("http://")
        folder = tmp_path / "second"
        folder.mkdir()
        async with serving(folder, "--http-listen", address) as second:
            assert await second.end() == 2
            assert any("http.listen" in message for message in second.messages)
        assert not (folder / "rlmm-data" / "log").exists()
        assert await first.end(signal.SIGTERM) == 0


async def test_serve_when_a_client_holds_on_then_it_ends_in_time(tmp_path: Path) -> None:
    """Open connections do not delay the end of the process."""
    async with serving(tmp_path, "--http-listen", ANYWHERE) as service:
        host, _, port = (await url_of(service)).removeprefix("http://").partition(":")
        connections = [await asyncio.open_connection(host, int(port)) for _ in range(3)]
        connections[0][1].write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await connections[0][0].readline()).startswith(b"HTTP/1.1 200")
        assert await service.end(signal.SIGTERM, 20.0) == 0
        for _, writer in connections:
            writer.close()


async def test_serve_when_it_begins_then_names_its_http_address(tmp_path: Path) -> None:
    """One log line shows a command that works as it stands, and a restart keeps the token."""
    told = []
    for _ in range(2):
        async with serving(tmp_path, "--http-listen", "0.0.0.0:0") as service:
            line = await service.until("/v1 asks for a token: ")
            command = str(line["message"]).partition(": ")[2].replace("curl ", "curl -s ")
            await service.until_open(50)
            typed = await asyncio.create_subprocess_shell(
                command, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
            )
            text, _ = await typed.communicate()
            assert json.loads(text)["is_ready"] is True
            assert await service.end(signal.SIGTERM) == 0
            told += service.lines
    file = tmp_path / "rlmm-data/http.token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().strip() not in repr(told)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--http-token-file", "none"), "/v1 is closed to every client"),
        (("--http-token-file", "none", "--http-local-role", "reader"), "/v1 is open to every"),
        (("--http-token-file", "none", "--access-tokens-file", "tokens"), "access.tokens_file"),
    ],
    ids=["nobody", "this-machine", "tokens"],
)
async def test_serve_when_it_makes_no_token_then_says_who_may_ask(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """One log line names the clients that reach the questions, for each configuration."""
    write_tokens(tmp_path / "tokens")
    given = ("--log-kind", "memory", "--http-listen", ANYWHERE, *arguments)
    async with serving(tmp_path, *given) as service:
        assert said in str((await service.until("/v1 "))["message"])
        await service.until_open(50)
        assert await service.end(signal.SIGTERM) == 0
    assert not (tmp_path / "rlmm-data/http.token").exists()
