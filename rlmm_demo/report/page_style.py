"""How the page looks: on a phone and on a desk, in light and in dark, and on paper. Pure."""

from __future__ import annotations

from typing import Final

from rlmm_demo.report.palette import MONO, SANS, colours, picture_style

_PAGE: Final = """
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%;scroll-behavior:smooth}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 SANS}
main,.top{max-width:976px;margin:0 auto;padding:0 24px}
.top{padding-top:56px;padding-bottom:8px}
.eyebrow{margin:0 0 10px;font-size:13px;font-weight:600;color:var(--muted)}
.eyebrow code{font:inherit;color:inherit}
h1{
  margin:0;font-size:clamp(29px,5.2vw,44px);line-height:1.12;letter-spacing:-.022em;
  font-weight:700;text-wrap:balance
}
h2{margin:0 0 6px;font-size:23px;line-height:1.25;letter-spacing:-.012em}
h3{margin:0;font-size:18px;line-height:1.3;letter-spacing:-.006em}
p{margin:0}
.lead{margin-top:14px;max-width:62ch;font-size:17.5px;color:var(--muted);text-wrap:pretty}
.unseen{
  position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);
  white-space:nowrap
}
.good{color:var(--good)}
.bad{color:var(--bad)}
section{margin-top:52px}
section>p{max-width:68ch;color:var(--muted);text-wrap:pretty}
.versions{
  display:flex;flex-wrap:wrap;gap:12px 36px;margin:26px 0 0;padding:16px 0 0;
  border-top:1px solid var(--line)
}
.versions dt{font-size:12.5px;color:var(--muted)}
.versions dd{
  margin:0;font-size:15px;font-weight:600;font-variant-numeric:tabular-nums;
  overflow-wrap:anywhere
}
.overview{
  list-style:none;margin:26px 0 0;padding:0;display:grid;
  grid-template-columns:repeat(auto-fill,minmax(280px,1fr));gap:0 28px
}
.overview li{border-bottom:1px solid var(--line)}
.overview a{
  display:flex;gap:10px;align-items:baseline;padding:9px 0;color:inherit;
  text-decoration:none;font-size:15px
}
.overview a:hover .what{text-decoration:underline;text-underline-offset:3px}
.overview .at,.overview .took{
  color:var(--muted);font-size:13px;font-variant-numeric:tabular-nums
}
.overview .what{flex:1;min-width:0;overflow-wrap:anywhere}
.tick{font-weight:700}
a:focus-visible,[tabindex]:focus-visible,summary:focus-visible{
  outline:2px solid var(--tier);outline-offset:2px
}
.card,.screen{
  margin:20px 0 0;padding:24px;background:var(--card);border:1px solid var(--line);
  border-radius:12px
}
figure svg{display:block;width:100%;height:auto;overflow:visible}
figure .narrow{display:none}
figcaption{margin-bottom:18px;font-weight:600;text-wrap:pretty}
.note{margin-top:14px;font-size:13.5px;color:var(--muted);max-width:78ch}
details{margin-top:18px}
summary{cursor:pointer;font-size:14px;color:var(--tier-ink);width:fit-content}
.scroll{overflow-x:auto;margin-top:16px}
table{
  border-collapse:collapse;width:100%;font-size:14.5px;font-variant-numeric:tabular-nums
}
caption{text-align:left;font-size:13.5px;color:var(--muted);padding-bottom:8px}
th,td{
  text-align:left;padding:8px 18px 8px 0;border-bottom:1px solid var(--line);
  vertical-align:baseline
}
thead th{font-size:12.5px;font-weight:500;color:var(--muted);white-space:nowrap}
tbody th{font-weight:500;overflow-wrap:anywhere;min-width:9em}
tbody tr:last-child>*{border-bottom:0}
.number{text-align:right}
td.number{white-space:nowrap}
th:last-child,td:last-child{padding-right:0}
.scoreboard td:nth-child(4),.scoreboard th:nth-child(4){
  text-align:left;white-space:normal;min-width:9em
}
.scoreboard tbody td:nth-child(4){color:var(--muted)}
.ratio{font-weight:600;white-space:nowrap}
.screen header{display:flex;gap:14px;align-items:baseline}
.screen .number{
  font-size:18px;font-weight:700;color:var(--muted);font-variant-numeric:tabular-nums
}
.screen h3{flex:1;min-width:0;overflow-wrap:anywhere}
.pill{
  padding:2px 11px;border-radius:99px;font-size:13px;font-weight:600;white-space:nowrap;
  font-variant-numeric:tabular-nums
}
.pill.good{background:var(--good-soft)}
.pill.bad{background:var(--bad-soft)}
.claim{margin-top:8px;max-width:68ch;text-wrap:pretty;overflow-wrap:anywhere}
.trouble{
  margin-top:12px;padding:10px 14px;border-radius:8px;background:var(--bad-soft);
  font-size:15px;overflow-wrap:anywhere
}
.figures{
  display:grid;grid-template-columns:repeat(auto-fill,minmax(190px,1fr));gap:18px 28px;
  margin:20px 0 0
}
.figures dt{font-size:13px;color:var(--muted)}
.figures dd{margin:0;overflow-wrap:anywhere}
.figures .value{
  font-size:23px;line-height:1.3;font-weight:650;letter-spacing:-.012em;
  font-variant-numeric:tabular-nums
}
.figures .against{font-size:13px;color:var(--muted)}
pre{
  margin:20px 0 0;padding:16px 18px;border-radius:8px;background:var(--sunk);
  border:1px solid var(--line);overflow:auto;max-height:26em;font:13px/1.55 MONO;tab-size:8
}
code{font-family:MONO}
pre b{font-weight:650}
.prompt{color:var(--muted);user-select:none}
footer{
  max-width:976px;margin:56px auto 0;padding:20px 24px 56px;color:var(--muted);
  font-size:13.5px
}
@media (max-width:640px){
main,.top,footer{padding-left:16px;padding-right:16px}
.top{padding-top:32px}
.card,.screen{padding:18px 16px;border-radius:10px}
figure .wide{display:none}
figure .narrow{display:block}
section{margin-top:40px}
.screen header{flex-wrap:wrap;row-gap:6px}
.screen h3{flex-basis:70%}
.figures{grid-template-columns:repeat(auto-fill,minmax(140px,1fr))}
pre{font-size:12px;padding:14px}
}
@media print{
body{background:none}
.card,.screen{break-inside:avoid}
pre{max-height:none;white-space:pre-wrap}
}
"""


def page_style() -> str:
    """The whole style of the page."""
    page = _PAGE.strip().replace("SANS", SANS).replace("MONO", MONO)
    return "\n" + colours(":root") + page + "\n" + picture_style("figure")
