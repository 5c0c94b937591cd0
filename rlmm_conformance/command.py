"""`rlmm conformance`: judge an implementation against the corpus, or serve one of ours."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlmm.base.native_core import ShardEngine
from rlmm.cli.common.exit_codes import EXIT_FOUND
from rlmm.cli.common.output import OUTPUTS
from rlmm.errors import ConfigError
from rlmm.metadata.engines import shard_type
from rlmm_conformance.corpus import load_corpus, load_packaged
from rlmm_conformance.engine import Suite
from rlmm_conformance.exec_engine import ANSWER_TIMEOUT_MS, ExecEngine
from rlmm_conformance.model_engine import ModelEngine
from rlmm_conformance.python_engine import PythonEngine
from rlmm_conformance.record_vectors import load_record_vectors
from rlmm_conformance.report import print_report
from rlmm_conformance.rules import ConformanceRule
from rlmm_conformance.runner import run
from rlmm_conformance.serve import serve

if TYPE_CHECKING:
    from rlmm_conformance.engine import EngineUnderTest

ENGINES = ("python", "native", "model", "exec:COMMAND")
_EXEC = "exec:"
_ENGINE_OPTION = click.option(
    "--engine",
    "engine_name",
    default="python",
    show_default=True,
    metavar="|".join(ENGINES),
    help="The implementation: this package's engine in Python, its native core, the literal model "
    "of Kafka, or a command.",
)


@click.group()
def conformance() -> None:
    """Compare an implementation with Kafka's recorded answers."""


@conformance.command("run")
@click.option(
    "--vectors",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Scenario file to run in place of the packaged corpus; may be repeated.",
)
@_ENGINE_OPTION
@click.option(
    "--suite",
    "suite_names",
    multiple=True,
    type=click.Choice([str(suite) for suite in Suite]),
    help=(
        "Part of the corpus to run; may be repeated. Without it: everything the engine offers, or "
        "with --vectors the scenarios alone."
    ),
)
@click.option("--output", type=click.Choice(OUTPUTS), default="table", show_default=True)
@click.option(
    "--answer-timeout-ms",
    type=click.IntRange(min=1),
    default=ANSWER_TIMEOUT_MS,
    show_default=True,
    help="How long exec:COMMAND may take for one answer.",
)
@click.pass_context
def run_command(
    context: click.Context,
    *,
    vectors: tuple[Path, ...],
    engine_name: str,
    suite_names: tuple[str, ...],
    output: str,
    answer_timeout_ms: int,
) -> None:
    """
    Run the corpus against an engine.

    Prints what passed, the differences from Kafka that a named rule is proved to explain, and what
    failed. Exit code 0 without failures, 1 with, 2 for bad input, 3 when the engine cannot be
    started or gives up.
    """
    suites = [Suite(name) for name in suite_names]
    if not suites:
        suites = [Suite.SCENARIOS] if vectors else list(Suite)
    elif vectors and Suite.SCENARIOS not in suites:
        raise click.UsageError("--vectors are scenarios: add --suite scenarios, or leave it out")
    corpora = [load_corpus(path) for path in vectors] or [load_packaged()]
    records = load_record_vectors()
    engine = open_engine(engine_name, answer_timeout_ms)
    try:
        skip_missing = not suite_names and not vectors
        report = run(engine, corpora, records, suites, skip_missing=skip_missing)
    finally:
        engine.close()
    print_report(report, output)
    if report.failed:
        context.exit(EXIT_FOUND)


@conformance.command("serve")
@_ENGINE_OPTION
def serve_command(*, engine_name: str) -> None:
    """
    Answer the exec protocol on standard input and output.

    The other side of --engine exec:COMMAND, and an example for engines in other languages.
    """
    engine = open_engine(engine_name)
    try:
        serve(engine, sys.stdin.buffer, sys.stdout.buffer)
    finally:
        engine.close()


def open_engine(name: str, answer_timeout_ms: int = ANSWER_TIMEOUT_MS) -> EngineUnderTest:
    """Return the engine that *name* means; raises `ConfigError` or `EngineFailed`."""
    if name.startswith(_EXEC):
        return ExecEngine(name.removeprefix(_EXEC), answer_timeout_ms)
    if name == "python":
        return PythonEngine()
    if name == "native":
        return PythonEngine(shard_type(ShardEngine.NATIVE), name)
    if name == "model":
        return ModelEngine(frozenset({ConformanceRule.KAFKA_20932}))
    raise ConfigError(f"no engine {name!r}: choose one of {', '.join(ENGINES)}")
