"""The style of the page, in light and in dark, on a phone and on paper. Pure."""

from __future__ import annotations

from typing import Final

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
