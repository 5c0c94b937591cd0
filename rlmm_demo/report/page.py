"""The report as one page that asks no other place for anything. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm_demo.report import charts, tables
from rlmm_demo.report.markup import Markup, element, join
from rlmm_demo.report.numbers import amount_text
from rlmm_demo.report.tables import figure_text, ratio_text, verdict

if TYPE_CHECKING:
    from rlmm_demo.report.charts import Chart
    from rlmm_demo.report.story import DemoStory, Figure, ScreenResult

LINES_MAX: Final = 60
"""Lines of an output that are kept: the first ones, and how many follow."""
_LINE_MAX: Final = 400


def report_page(story: DemoStory) -> str:
    """Return the page: well-formed XML without scripts and addresses, whatever the values hold."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"rlmm demo: {_verdict(story)}"),
        element("style", Markup(page_style())),
    )
    main = element("main", *_charts(story), _scoreboard(story), _screens(story))
    page = element("html", head, "\n", element("body", _top(story), main, _foot(story)), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _verdict(story: DemoStory) -> str:
    count = len(story.screens)
    if not count:
        return "no screen was shown"
    if story.is_shown:
        return f"all {count} claims were shown" if count > 1 else "the claim was shown"
    left = count - story.shown_count
    return f"{left} of {count} claims {'was' if left == 1 else 'were'} not shown"


def _top(story: DemoStory) -> Markup:
    text = _verdict(story)
    lead = f"The story took {amount_text(round(story.seconds, 1), 's')}"
    if story.with_broker:
        lead += ", with an unmodified Kafka broker that runs its remote tier on rlmm."
    else:
        why = f" ({story.without_broker_because})" if story.without_broker_because else ""
        lead += f", without a Kafka broker{why}, and so without stock consumers."
    versions = [
        element("div", element("dt", name), element("dd", version))
        for name, version in story.versions.items()
    ]
    return element(
        "header",
        element("p", element("code", "rlmm demo"), class_="muted"),
        element("h1", f"{text[0].upper()}{text[1:]}"),
        element("p", lead),
        element("ol", *map(_overview_line, story.screens), class_="overview"),
        element("dl", *versions) if versions else None,
        class_="top",
    )


def _overview_line(screen: ScreenResult) -> Markup:
    mark, kind, name = _tick(screen)
    link = element(
        "a",
        element("span", mark, class_=kind, role="img", aria_label=f"{name}:"),
        element("span", f"{screen.number}", class_="at"),
        element("span", screen.title, class_="what"),
        element("span", f"{screen.seconds:.1f}\N{NO-BREAK SPACE}s", class_="at"),
        href=f"#screen-{screen.number}",
    )
    return element("li", link)


def _tick(screen: ScreenResult) -> tuple[str, str, str]:
    return ("✓", "good", "shown") if screen.is_shown else ("✗", "bad", "not shown")


def _charts(story: DemoStory) -> list[Markup]:
    sections = []
    if story.tier_maps:
        table = tables.tier_table(story.tier_maps)
        folded = element("details", element("summary", "The same as a table"), table)
        sizes = tables.sizes_table(story.tier_maps)
        sections.append(_chart(charts.tier_map(story.tier_maps), sizes, folded))
    if story.replays:
        table = tables.replay_table(story.replays)
        sections.append(_chart(charts.replay_chart(story.replays), table))
    if story.stalls is not None:
        sections.append(_chart(charts.stall_chart(story.stalls), tables.stall_table(story.stalls)))
    return sections


def _chart(chart: Chart, *below: Markup | None) -> Markup:
    words = f"{chart.title}. {chart.caption}"
    figure = element("figure", chart.inline(), class_="card", role="img", aria_label=words)
    heading = element("h2", chart.title)
    return element("section", heading, element("p", chart.caption), figure, *below)


def _scoreboard(story: DemoStory) -> Markup | None:
    if not story.scoreboard:
        return None
    table = tables.scoreboard_table(story.scoreboard)
    return element("section", element("h2", "Scoreboard"), table)


def _screens(story: DemoStory) -> Markup:
    sections = [_screen(screen) for screen in story.screens]
    nothing = element("p", "No screen was reached.")
    return element("section", element("h2", "Screen by screen"), *(sections or [nothing]))


def _screen(screen: ScreenResult) -> Markup:
    mark, kind, name = _tick(screen)
    took = f"{mark} {name} in {amount_text(round(screen.seconds, 1), 's')}"
    trouble = element("p", screen.trouble, class_="trouble") if screen.trouble else None
    figures = [_figure(figure) for figure in screen.figures]
    return element(
        "article",
        element(
            "header",
            element("h3", f"Screen {screen.number}: {screen.title}"),
            element("span", took, class_=kind),
        ),
        element("p", screen.claim),
        trouble,
        element("dl", *figures, class_="figures") if figures else None,
        _terminal(screen),
        id=f"screen-{screen.number}",
        class_="screen",
    )


def _figure(figure: Figure) -> Markup:
    other, compared = figure.compared_with, None
    if other is not None:
        text = f"{other.name}: {amount_text(other.value, figure.unit)}"
        ratio = None
        if figure.ratio is not None:
            ratio = join(element("span", ratio_text(figure), class_=verdict(figure)), " ")
        compared = element("dd", ratio, text, class_="against")
    value = element("dd", figure_text(figure), class_="value")
    return element("div", element("dt", figure.name), value, compared)


def _terminal(screen: ScreenResult) -> Markup | None:
    output = "\n".join(screen.lines)
    if not screen.commands and not output.strip():
        return None
    typed = [join("$ ", element("b", command), "\n") for command in screen.commands]
    lines = output.strip("\r\n").splitlines()
    kept = [
        line if len(line) <= _LINE_MAX else f"{line[:_LINE_MAX]}…" for line in lines[:LINES_MAX]
    ]
    if len(lines) > LINES_MAX:
        kept.append(f"… {len(lines) - LINES_MAX:,} more lines")
    return element(
        "pre", element("code", *typed, "\n".join(kept)),
        tabindex=0, role="region", aria_label=f"Commands and output of screen {screen.number}",
    )  # fmt: skip


def _foot(story: DemoStory) -> Markup:
    when = f" {story.written_at}." if story.written_at else ""
    return element(
        "footer",
        "Every figure of this page was measured or counted in its run; "
        f"the value that a figure is compared with stands beside it.{when}",
    )


COLOURS: Final = {
    "paper": ("#f6f5f1", "#0e1318"),
    "card": ("#ffffff", "#161d24"),
    "sunk": ("#f3f2ee", "#0f151b"),
    "ink": ("#1b232c", "#e8ecef"),
    "muted": ("#5c6670", "#9aa6b1"),
    "line": ("#e1dfd8", "#2a343e"),
    "good": ("#1b7a4b", "#5fd096"),
    "bad": ("#c2243c", "#ff7082"),
    "bad-soft": ("#fbe4e7", "#40191f"),
}
"""Name to light and dark. Words have a contrast of 4.5 at least on every ground."""

_STYLE: Final = """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,sans-serif}
header.top,main,footer{max-width:976px;margin:0 auto;padding:24px}
h1{margin:0;font-size:clamp(29px,5vw,42px);line-height:1.15}
h2{margin:36px 0 6px}
h3{flex:1;margin:0;font-size:18px}
p{margin:0;max-width:68ch}
footer,.muted,caption,dt,.against,.overview .at{color:var(--muted);font-size:13.5px}
.good{color:var(--good)}
.bad{color:var(--bad)}
.overview{list-style:none;padding:0;columns:280px}
.overview a{display:flex;gap:10px;padding:6px 0;color:inherit}
.overview .what{flex:1}
dl{display:flex;flex-wrap:wrap;gap:14px 36px;margin:20px 0 0}
dd{margin:0;overflow-wrap:anywhere;font-weight:600}
dd.against{font-weight:400}
.figures .value{font-size:22px}
.card,.screen{
  margin:20px 0 0;padding:20px;border:1px solid var(--line);border-radius:12px;
  background:var(--card);overflow-x:auto
}
.card{background:#fff}
.card svg{display:block;width:100%;min-width:600px;height:auto}
.screen header{display:flex;gap:14px}
.scroll{overflow-x:auto;margin-top:16px}
table{border-collapse:collapse;width:100%;font-size:14.5px;font-variant-numeric:tabular-nums}
caption{text-align:left}
th,td{text-align:left;padding:7px 18px 7px 0;border-bottom:1px solid var(--line)}
th{font-weight:500}
.number{text-align:right}
.trouble{margin-top:12px;padding:10px 14px;border-radius:8px;background:var(--bad-soft)}
pre{
  padding:14px;border:1px solid var(--line);border-radius:8px;background:var(--sunk);
  overflow:auto;max-height:26em;font:13px/1.5 ui-monospace,monospace
}
@media print{
.card,.screen{break-inside:avoid}
pre{max-height:none;white-space:pre-wrap}
}
"""


def page_style() -> str:
    colours = "".join(f"--{name}:light-dark({a},{b});" for name, (a, b) in COLOURS.items())
    return f"\n:root{{color-scheme:light dark;{colours}}}{_STYLE}"
