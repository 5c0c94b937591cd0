"""Alerts, dashboard and pages name existing metrics and labels; every alert has a remedy."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from rlmm.cli.main import cli
from rlmm.http.routes import ROUTES
from rlmm.metrics.metric import MetricKind
from rlmm.metrics.table import METRICS
from tests.support.repository import foreign_tools, tree
from tests.support.repository.deployment import (
    RULES,
    alerts,
    anchors,
    dashboard,
    expressions,
    label_names,
    metric_names,
    panels,
    run,
)
from tests.support.repository.deployment import documents as documents_of
from tools import documents

SERIES = {name: labels for metric in METRICS for name, labels in metric.series.items()}
HISTOGRAMS = {
    name for metric in METRICS if metric.kind is MetricKind.HISTOGRAM for name in metric.series
}
SCRAPED = {"instance", "job"}
"""Labels that Prometheus adds."""
PAGE = "docs/operating.md"
TRIED = RULES.with_name("rules_test.yml")
START = Path("docs/start.md")
QUERIES = list(expressions())


def is_known(name: str) -> bool:
    return name in SERIES


def minutes(time: str) -> int:
    """Parse a time of a rule's test, always whole minutes."""
    assert time.endswith("m"), time
    return int(time[:-1])


def unknown_options(words: list[str]) -> set[str]:
    """Return options of a line that its command does not have; *words* are those behind `rlmm`."""
    known = {context.command_path: context for context in documents.commands()}
    name = "rlmm"
    command: click.Command = cli
    while words and isinstance(command, click.Group):
        name, words = f"{name} {words[0]}", words[1:]
        command = known[name].command
    options = {one for each in command.get_params(known[name]) for one in each.opts}
    return {word for word in words if word.startswith("--")} - options


@pytest.mark.parametrize(("who", "expression"), QUERIES, ids=[who for who, _ in QUERIES])
def test_query_then_reads_metrics_and_labels_that_there_are(who: str, expression: str) -> None:
    """Each query uses metrics of the table, with their labels or those of Prometheus."""
    names = metric_names(expression)
    assert names, who
    assert [name for name in names if not is_known(name)] == []
    labels = {label for name in names for label in SERIES[name]} | SCRAPED
    assert label_names(expression) - labels == set()


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_alert_then_has_severity_and_remedy(alert: dict[str, dict[str, str]]) -> None:
    """Each alert has a duration, a severity, a sentence, and a section with a remedy."""
    assert re.fullmatch(r"[1-9]\d*[mh]", str(alert["for"]))
    assert alert["labels"]["severity"] in {"critical", "warning"}
    assert alert["annotations"]["summary"].endswith(".")
    page, _, section = alert["annotations"]["runbook"].partition("#")
    assert page == PAGE
    assert section == str(alert["alert"]).lower()
    assert section in anchors(page)
    named = set(re.findall(r"\$labels\.(\w+)", alert["annotations"]["summary"]))
    metrics = metric_names(str(alert["expr"]))
    labels = {label for name in metrics for label in SERIES[name]}
    assert named <= labels | SCRAPED


def test_every_section_about_an_alert_has_its_alert() -> None:
    """Every section about an alert belongs to an existing alert."""
    text = tree.read(Path(PAGE)).partition("## Alerts\n")[2].partition("\n## ")[0]
    named = re.findall(r"^### (\w+)$", text, re.MULTILINE)
    assert sorted(named) == sorted(str(alert["alert"]) for alert in alerts())


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_section_about_an_alert_then_names_a_command_that_shows_more(alert: dict[str, str]) -> None:
    """Each section names at least one of our commands, and all of them exist with their options."""
    section = tree.read(Path(PAGE)).partition(f"\n### {alert['alert']}\n")[2]
    named = re.findall(r"`rlmm ([a-z][^`]*)`", section.partition("\n#")[0])
    assert named
    for line in named:
        assert unknown_options(shlex.split(line)) == set(), line


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_alert_then_is_tried_where_raised_and_where_not(alert: dict[str, Any]) -> None:
    """Each alert is raised in its case with its text, and quiet before it and in its other case."""
    raised: list[dict[str, Any]] = []
    last_minute = False
    for test in documents_of(TRIED)[0]["tests"]:
        given = {name for one in test["input_series"] for name in metric_names(one["series"])}
        asked = [one for one in test["alert_rule_test"] if one["alertname"] == alert["alert"]]
        loud = {minutes(one["eval_time"]): one["exp_alerts"] for one in asked if one["exp_alerts"]}
        quiet = {minutes(one["eval_time"]) for one in asked if not one["exp_alerts"]}
        raised += [one for expected in loud.values() for one in expected]
        is_whole = metric_names(alert["expr"]) <= given
        last_minute = last_minute or (is_whole and any(at - 1 in quiet for at in loud))
    assert raised, "is never raised"
    assert last_minute, "is nowhere quiet a minute before it is raised"
    for one in raised:
        assert one["exp_labels"]["severity"] == alert["labels"]["severity"]
        assert one["exp_annotations"].keys() == alert["annotations"].keys()
        assert one["exp_annotations"]["runbook"] == alert["annotations"]["runbook"]


def test_tried_rules_then_name_alerts_and_metrics_that_there_are() -> None:
    """The tried alerts exist, and so do the metrics that they are tried with."""
    folder = RULES.parent
    (tried,) = documents_of(TRIED)
    (scraping,) = documents_of(folder / "prometheus.yml")
    assert tried["rule_files"] == scraping["rule_files"] == [RULES.name]
    names = {one["alertname"] for test in tried["tests"] for one in test["alert_rule_test"]}
    assert names <= {str(alert["alert"]) for alert in alerts()}
    given = {
        name
        for test in tried["tests"]
        for one in test["input_series"]
        for name in metric_names(one["series"])
    }
    assert given <= set(SERIES)


@pytest.mark.network
def test_rules_when_promtool_judges_then_it_accepts_and_raises_them() -> None:
    """`promtool` accepts rules and configuration, and raises each alert of the tried rules."""
    tool = foreign_tools.promtool()
    run(tool, "check", "rules", RULES)
    run(tool, "check", "config", RULES.with_name("prometheus.yml"))
    run(tool, "test", "rules", TRIED)


def test_counters_are_read_as_rates_and_gauges_as_they_are() -> None:
    """Each query uses the growth of a counter and the value of a gauge."""
    for who, expression in QUERIES:
        for name in metric_names(expression):
            is_counter = name.endswith("_total") or name in HISTOGRAMS
            grows = re.search(rf"\b(?:rate|increase)\({name}\b", expression)
            assert bool(grows) == is_counter, f"{who}: {name}"


def test_dashboard_asks_the_source_that_is_chosen() -> None:
    """Each panel takes its data source from the variable and has a description."""
    names = [variable["name"] for variable in dashboard()["templating"]["list"]]
    assert names == ["datasource", "cluster", "instance"]
    assert len({panel["id"] for panel in panels()}) == len(panels())
    for panel in panels():
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["description"].endswith(".")
        assert all(one["datasource"]["uid"] == "${datasource}" for one in panel["targets"])


def test_links_to_sections_lead_somewhere() -> None:
    """Every link to a section of a page names a heading of it."""
    broken = []
    for path in [path for path in tree.files() if path.suffix == ".md"]:
        for target, section in re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", tree.read(path)):
            page = path if not target else path.parent / target
            found = (tree.ROOT / page).resolve().relative_to(tree.ROOT)
            if section not in anchors(str(found)):
                broken.append(f"{path}: {target}#{section}")
    assert not broken


def test_commands_of_the_first_page_are_commands() -> None:
    """Each command line of rlmm in it parses: command and options exist."""
    blocks = re.findall(r"```console\n(.*?)```", tree.read(START), re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    ours = [shlex.split(line[2:])[1:] for line in lines if line.startswith("$ rlmm ")]
    assert len(ours) >= 4
    for line in ours:
        assert unknown_options(line) == set(), line


def test_addresses_of_the_first_page_are_answered() -> None:
    """Each address on the page is a path of the service with its parameters."""
    routes = {route.path: route for route in ROUTES}
    asked = re.findall(r"localhost:7405(/[\w/-]+)(?:\?([^' ]*))?", tree.read(START))
    assert len(asked) >= 3
    for path, query in asked:
        named = {part.partition("=")[0] for part in query.split("&") if part}
        assert named <= {parameter.name for parameter in routes[path].parameters}


def test_rules_have_names_of_their_own() -> None:
    """No two alerts share a name."""
    names = [alert["alert"] for alert in alerts()]
    assert len(names) == len(set(names))
    assert tree.read(RULES).count("- alert:") == len(names)
