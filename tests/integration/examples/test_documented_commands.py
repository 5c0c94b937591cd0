"""Every command and snippet of README and docs does what its page says, as it is written there."""

from __future__ import annotations

import ast
import asyncio
import re
import shlex
import shutil
import sys
import types
from functools import cache
from typing import TYPE_CHECKING, Any

import click
import pytest

import rlmm
from broker_adapter.blocking import BlockingRemoteLogMetadataClient
from rlmm.cli.main import cli
from rlmm.library.remote_log_metadata import RemoteLogMetadata
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import open_store
from spark_tiering.stores.s3_settings import S3Settings
from tests.support.cli.documented_desk import (
    KEYS,
    PREFIX,
    Desk,
    Prepared,
    add_what_readme_explains,
    serving,
)
from tests.support.partitions.written_logs import WrittenLog
from tests.support.repository import tree
from tests.support.repository.documented_commands import (
    DocumentedBlock,
    blocks,
    reason_elsewhere,
    why_not_run,
)
from tests.support.stores.s3_servers import free_ports, moto_server
from tests.support.tier.job_folders import TierPlace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HERE = [block for block in blocks() if not reason_elsewhere(block)]
PAGES = sorted(
    {block.page for block in HERE if any(not why_not_run(one) for one in block.commands)}
)


# ------------------------------------------------------------------------------- a place to type


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    folder = tmp_path_factory.mktemp("prepared")
    place = TierPlace(folder, LocalSettings(folder / "store"))
    assert place.run(filters=SegmentSelection(("payments",))).is_fine
    shutil.copytree(place.archive, folder / "yesterday")
    assert place.run().is_fine
    with moto_server(folder) as server:
        made = Prepared(folder, server.endpoint)
        made.client().create_bucket(Bucket="bucket")
        yield made


@pytest.fixture
def desk(prepared: Prepared, tmp_path: Path) -> Iterator[Desk]:
    for name in ("logs", "archive", "store", "yesterday"):
        shutil.copytree(prepared.folder / name, tmp_path / name)
    shutil.copytree(prepared.folder / "archive" / "log", tmp_path / "rlmm-data" / "log")
    prepared.fill_bucket()
    (tmp_path / "bin").mkdir()
    for name, words in {"rlmm": "-m rlmm ", "python": "", "python3": ""}.items():
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {words}"$@"\n')
        program.chmod(0o755)
    (port,) = free_ports(1)
    made = Desk(tmp_path, port, prepared.endpoint)
    with serving(made):
        yield made


# ---------------------------------------------------------------------------- shell commands

FOUND = {
    ("tier-care-rebuild.md", "tier rebuild"): "a rebuild that finds lost metadata says so by 1",
    ("README.md", "rlmm explain"): "an offset that is not found is a finding",
    ("tier-care-audit.md", "tier audit"): "objects of the jobs of another store",
}
"""Page and a part of a command that may end with 1: it found what it looks for."""


def before(page: str, desk: Desk) -> None:
    """Make what a page says that its reader has already."""
    if page == "README.md":
        add_what_readme_explains(desk.folder / "rlmm-data/rlmm.sock")
    lines = {
        "tier-care-rebuild.md": [
            "rlmm tier backup export yesterday.jsonl.gz --embedded yesterday", "rm -r archive",
        ],
        "tier-care-export.md": [
            "rlmm tier export --embedded archive --topic orders --save monday.json",
        ],
    }.get(page, [])  # fmt: skip
    for line, (code, said) in zip(lines, desk.script(lines), strict=True):
        assert code == 0, (line, said)


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_when_typed_in_order_then_do_as_it_says(page: str, desk: Desk) -> None:
    """Every command that needs no cluster ends with 0, or with 1 where it looks for something."""
    before(page, desk)
    commands = [
        one
        for block in HERE
        if block.page == page
        for one in block.commands
        if not why_not_run(one) and one.text != "rlmm serve"
    ]
    results = desk.script([desk.placed(one.text) for one in commands])
    assert len(results) == len(commands)
    wrong: list[tuple[str, int | str, str]] = []
    for one, (code, said) in zip(commands, results, strict=True):
        may_find = any(name == page and part in one.text for name, part in FOUND)
        if code not in ({0, 1} if may_find else {0}) or "Traceback" in said:
            wrong.append((one.text, code, said))
        if page == "README.md":
            lines = said.splitlines()
            wrong += [(one.text, line, said) for line in one.shown if line not in (*lines, "...")]
    assert not wrong


# --------------------------------------------------------------- commands that are only parsed


def own_words(words: list[str]) -> list[str]:
    """Return the arguments of `rlmm` among *words*, up to a pipe or a redirection."""
    words = words[words.index("rlmm") + 1 :]
    ends = [words.index(end) for end in ("|", ">") if end in words]
    return words[: min(ends, default=len(words))]


def rlmm_commands(text: str) -> Iterator[list[str]]:
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if "rlmm" in words[:4] and "exec:" not in line:
            yield own_words(words)


def parse(words: list[str]) -> None:
    """Parse *words* as `rlmm` does; raise click's error for an unknown option or value."""
    context = click.Context(cli, info_name="rlmm")
    command: click.Command = cli
    while isinstance(command, click.Group):
        name, *words = words
        found = command.get_command(context, name)
        assert found is not None, name
        context = click.Context(found, parent=context, info_name=name)
        command = found
    try:
        command.make_context(command.name or "", list(words), parent=context.parent)
    except click.BadParameter as error:
        if "does not exist" not in str(error):
            raise


@cache
def help_examples() -> list[list[str]]:
    """Return the commands in the help of every command: lines that begin with `rlmm`."""
    text = (tree.ROOT / "docs/cli.md").read_text(encoding="utf-8")
    folded = re.sub(r"\\\n\s+", " ", text)
    found = re.findall(r"^ {2,4}(rlmm [^\n]+)$", folded, re.MULTILINE)
    return [own_words(shlex.split(one)) for one in found]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_commands_that_need_a_cluster_when_parsed_then_are_valid() -> None:
    """Each flag and value that a page or an example of `--help` shows is one that rlmm has."""
    shown = [
        words
        for block in blocks()
        for one in block.commands
        for words in rlmm_commands(one.text)
    ]  # fmt: skip
    examples = help_examples()
    assert len(shown) > 40
    assert len(examples) > 60
    wrong = []
    for words in (*shown, *examples):
        try:
            parse(words)
        except (click.ClickException, AssertionError) as error:
            wrong.append((words, str(error)))
    assert not wrong


# ---------------------------------------------------------------------------- settings, programs


def in_language(language: str, *of_pages: str) -> list[DocumentedBlock]:
    found = [one for one in HERE if one.language == language and one.page in of_pages]
    assert found
    return found


def test_configurations_when_loaded_then_are_accepted(desk: Desk) -> None:
    """`rlmm config show` accepts every configuration of the page, and refuses as the page says."""
    (desk.folder / "etc").mkdir()
    (desk.folder / "etc/test.properties").write_text("bootstrap.servers=test-1:9092\n")
    (desk.folder / "etc/client.properties").write_text("client.id=rlmm\n")
    for block in in_language("toml", "configuration.md"):
        file = desk.folder / "rlmm.toml"
        file.touch(0o600)  # as the page says of a file with secrets
        file.write_text(desk.placed(block.text))
        secret = "RLMM_KAFKA_SASL_PASSWORD=x " if "sasl.username" in block.text else ""
        ((code, said),) = desk.script([f"{secret}rlmm config show --config rlmm.toml"])
        assert code == 0, (block.place, said)
    (refused,) = (one for one in blocks() if "RLMM_PUMP_READ_BYTES" in one.first_line)
    ((code, said),) = desk.script(["RLMM_PUMP_READ_BYTES=0 rlmm config show"])
    assert (code, said.strip()) == (2, refused.text.strip())


async def execute(text: str, names: dict[str, Any]) -> None:
    """Run the program of a page; it may await, as in a notebook."""
    code = compile(text, "<page>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    made = types.FunctionType(code, names)()
    if asyncio.iscoroutine(made):
        await made


async def test_programs_when_run_then_do_as_they_say(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The programs of README, docs/start.md and docs/tier-care-export.md run as they stand."""
    (readme,) = in_language("python", "README.md")
    names: dict[str, Any] = {"__name__": "readme"}
    await execute(readme.text, names)
    await names["main"](str(tmp_path / "library"))
    library, client = in_language("python", "start.md")
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    await execute(library.text, names)
    monkeypatch.chdir(desk.folder)
    await execute(client.text, names)
    async with rlmm.open(tmp_path / "own/rlmm-data/log") as metadata:
        await metadata.wait_all_ready()
        assert await metadata.segments(names["orders"])
    (plan,) = in_language("python", "tier-care-export.md")
    text = plan.text.replace("rlmm:7404", "rlmm-data/rlmm.sock")
    await asyncio.to_thread(exec, text, {"__name__": "plan"})


@pytest.mark.long
def test_programs_of_spark_when_run_then_do_as_they_say(
    desk: Desk, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The programs and the view of docs/data-source.md and docs/spark.md run as they stand."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    prepared.empty_bucket()
    log = WrittenLog(11)
    log.fill(60)
    log.settle()
    settings = S3Settings("bucket", endpoint=desk.endpoint, is_path_style=True)
    with open_store(settings) as store:
        log.into_store(store, PREFIX)
    parts = [
        one.text
        for one in HERE
        if one.page in ("data-source.md", "spark.md") and one.language in ("python", "sql")
    ]
    assert len(parts) == 6
    place = {"store": "s3://bucket/kafka/", "endpoint": desk.endpoint, "pathStyle": "true"}
    view = parts[1].replace(
        "subscribe 'orders'", f"endpoint '{desk.endpoint}', pathStyle 'true', subscribe 'orders'"
    )
    program = "\n".join([
        "import json",
        "from pyspark.sql import SparkSession",
        "spark = SparkSession.builder.master('local[2]').getOrCreate()",
        f"place = {place!r}",
        "checkpoint, path = 'checkpoint', 'table'",
        parts[0].replace("http://127.0.0.1:9000", desk.endpoint),
        f"spark.sql({view.strip().rstrip(';')!r})",
        parts[2],
        "token = json.loads(open('orders.json').read())['token']",
        parts[3],
        parts[4].replace('.start(path)', '.format("parquet").option("path", path).start()'),
        "query.awaitTermination()",
        "assert spark.read.parquet(path).count() > 0",
        "spark.stop()",
        parts[5],
        "assert outcomes == [1, 4, 9] and not lost",
    ])  # fmt: skip
    (desk.folder / "pages.py").write_text(program)
    lines = [
        "rlmm tier export --from-manifests --topic orders --store s3://bucket/kafka/ "
        "--save orders.json",
        "python pages.py",
    ]
    for line, (code, said) in zip(lines, desk.script(lines), strict=True):
        assert code == 0, (line, said)


def test_verbs_of_library_and_client_when_named_by_readme_then_are_theirs() -> None:
    """README says which verbs differ, and each of them is there."""
    text = (tree.ROOT / "README.md").read_text(encoding="utf-8")
    assert "`list_segments` and `remote_log_size` for `segments` and `size`" in text
    for kind, names in (
        (RemoteLogMetadata, ("segments", "size")),
        (BlockingRemoteLogMetadataClient, ("list_segments", "remote_log_size")),
    ):
        assert all(callable(getattr(kind, name)) for name in names)
    for name in ("add_segment", "update_segment", "put_partition_delete"):
        assert hasattr(RemoteLogMetadata, name) == hasattr(BlockingRemoteLogMetadataClient, name)
