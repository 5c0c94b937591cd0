"""An HTTP server over engines of a test; every answer that is read is held to its document."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import aiohttp
from jsonschema import Draft202012Validator

from rlmm.access.authentication import Authenticator
from rlmm.access.settings import AccessSettings, TlsSettings
from rlmm.engine.service import Service
from rlmm.http.openapi import document
from rlmm.http.server import HttpServer
from rlmm.http.settings import HttpSettings
from rlmm.metrics.served_state import ServedState
from rlmm.telemetry.logs import LinesStatistics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from rlmm.engine.engine import Engine
    from rlmm.metadata.ids import TopicIdPartition

VERSION = "0.0.test"
ANYWHERE = "127.0.0.1:0"
READING = "reading-token-0123456789"
BEARER = f"Authorization: Bearer {READING}"


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def shown(self) -> Any:
        return json.loads(self.text)

    @property
    def code(self) -> str:
        return str(self.shown["error"]["code"])


def of(partition: TopicIdPartition, **more: object) -> dict[str, str]:
    named = {
        "topic_id": partition.topic_id,
        "topic": partition.topic,
        "partition": partition.partition,
        **more,
    }
    return {name: str(value) for name, value in named.items()}


@cache
def _validator(path: str, method: str, status: str, kind: str) -> Draft202012Validator:
    described = document(VERSION)
    responses: Any = described["paths"][path][method]["responses"]
    schema = responses[status]["content"][kind]["schema"]
    whole = {**schema, "components": described["components"]}
    Draft202012Validator.check_schema(whole)
    return Draft202012Validator(whole)


def require_described(path: str, method: str, answer: Answer) -> None:
    """Fail unless the OpenAPI document allows this answer on this path."""
    kind = answer.headers["Content-Type"].partition(";")[0]
    validator = _validator(path, method, str(answer.status), kind)
    if kind == "application/json":
        validator.validate(answer.shown)
    elif kind == "application/x-ndjson":
        for line in answer.text.splitlines():
            validator.validate(json.loads(line))


class HttpClient:
    def __init__(self, session: aiohttp.ClientSession, url: str, server: HttpServer) -> None:
        self.session = session
        self.url = url
        self.server = server

    async def get(self, path: str, **parameters: Any) -> Answer:
        return await self.ask("GET", path, **parameters)

    async def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: object = None,
        **parameters: Any,
    ) -> Answer:
        """Ask, and validate the answer where the OpenAPI document describes the path."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body)
        async with self.session.request(
            method, f"{self.url}{path}", params=parameters, headers=headers, data=data
        ) as response:
            answer = Answer(response.status, response.headers, await response.text())
        if path in document(VERSION)["paths"] and response.status != 405:
            require_described(path, method.lower(), answer)
        return answer

    async def metrics(self) -> dict[str, float]:
        answer = await self.get("/metrics")
        samples = (line for line in answer.text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in (one.rpartition(" ") for one in samples)}


def process_of(**engines: Engine) -> Service:
    service = Service({})
    service.engines.update(engines)
    return service


@asynccontextmanager
async def showing(
    *engines: Engine,
    process: Service | None = None,
    door: Authenticator | None = None,
    sources: ServedState | None = None,
    ssl: Any = True,
    token: str | None = None,
    **settings: Any,
) -> AsyncIterator[HttpClient]:
    """Start a server that shows *engines* or *process*, and its client, a reader by default."""
    if door is None:
        door = Authenticator(AccessSettings(), TlsSettings(), own_token=READING)
        token = token or (None if "local_role" in settings else READING)
    if sources is None:
        sources = ServedState(
            VERSION, lines=lambda: LinesStatistics({}, 0, 0, ""), access=door.statistics
        )
        named = {f"c{number}": engine for number, engine in enumerate(engines)}
        sources.begin(process or process_of(**named))
    chosen = HttpSettings(**{"listen": ANYWHERE, "stop_timeout_ms": 500, **settings})
    async with HttpServer(sources, chosen, door) as server:
        _, port = server.addresses[0]
        scheme = "http" if ssl is True else "https"
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connector = aiohttp.TCPConnector(ssl=ssl, limit=0, force_close=True)
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            yield HttpClient(session, f"{scheme}://127.0.0.1:{port}", server)
    await asyncio.sleep(0)
