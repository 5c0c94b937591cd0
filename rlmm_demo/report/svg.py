"""What every picture has: a frame, a legend, axes, labels that do not collide. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlmm_demo.report import palette
from rlmm_demo.report.markup import Markup, coordinate, element, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rlmm_demo.report.numbers import Scale

WIDE: Final = 880
NARROW: Final = 340
"""Widths that pictures are drawn for: a text that shrinks with its picture is no text."""
_GLYPH: Final = 0.6
"""How wide a letter is on average, in its height, but for these."""
_SLIM: Final = frozenset(" ,.;:'|!ijlftrI\N{RIGHT SINGLE QUOTATION MARK}")
_BROAD: Final = frozenset("mwMW@%")
_MARGIN: Final = 24
_HEADING_PX: Final = 54
_NAMESPACE: Final = "http://www.w3.org/2000/svg"


@dataclass(frozen=True, slots=True)
class Frame:
    """How a picture is called where it stands, and how wide it is."""

    name: str
    width: int = WIDE

    @property
    def is_narrow(self) -> bool:
        """Whether it is drawn for a phone."""
        return self.width < 600


@dataclass(frozen=True, slots=True)
class Drawing:
    """
    What is in a picture, how high that is, and what it is in words: what is said above it, and
    what is told to whoever cannot see it.
    """

    body: Markup
    height: float
    title: str
    caption: str
    description: str


def inline(drawing: Drawing, frame: Frame) -> Markup:
    """A picture as a part of a page, whose style it has."""
    return _picture(drawing, frame, (frame.width, drawing.height), drawing.body)


def standalone(drawing: Drawing, frame: Frame) -> str:
    """
    A picture as a file: with its colours, and a ground of its own, as nobody knows on what it is
    shown; its title and what follows from it are written above it.
    """
    size = (frame.width + 2 * _MARGIN, drawing.height + 2 * _MARGIN + _HEADING_PX)
    style = palette.colours("svg") + palette.picture_style("svg") + _STANDALONE_STYLE
    ground = element("rect", width=size[0], height=float(size[1]), rx=12, class_="ground")
    heading = join(
        label(_MARGIN, _MARGIN + 14, drawing.title, "heading"),
        label(_MARGIN, _MARGIN + 36, drawing.caption, "caption"),
    )
    place = f"translate({_MARGIN} {_MARGIN + _HEADING_PX})"
    body = join(
        element("style", Markup(style)),
        ground,
        heading,
        element("g", drawing.body, transform=place),
    )
    return _picture(drawing, frame, size, body, xmlns=_NAMESPACE) + "\n"


_STANDALONE_STYLE: Final = """
svg .ground{fill:var(--card);stroke:var(--line)}
svg .heading{font-size:17px;font-weight:650}
svg .caption{font-size:13px;fill:var(--muted)}
"""


def _picture(
    drawing: Drawing,
    frame: Frame,
    size: tuple[float, float],
    body: Markup,
    xmlns: str | None = None,
) -> Markup:
    width, height = (coordinate(float(side)) for side in size)
    return element(
        "svg",
        element("title", drawing.title, id=f"{frame.name}-title"),
        element("desc", drawing.description, id=f"{frame.name}-desc"),
        body,
        xmlns=xmlns,
        viewBox=f"0 0 {width} {height}",
        width=width if xmlns else None,
        height=height if xmlns else None,
        role="img",
        aria_labelledby=f"{frame.name}-title {frame.name}-desc",
    )


def label(x: float, y: float, text: str, class_: str = "", **more: object) -> Markup:
    """A text that starts, or by its class ends, at a place."""
    return element("text", text, x=float(x), y=float(y), class_=class_ or None, **more)


def line(start: tuple[float, float], end: tuple[float, float], class_: str) -> Markup:
    (x1, y1), (x2, y2) = start, end
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=class_)


def text_px(text: str, font_px: float = 12) -> float:
    """About how wide a text is; no font is asked, they differ by machine."""
    slim = sum(letter in _SLIM for letter in text)
    broad = sum(letter in _BROAD for letter in text)
    return font_px * (_GLYPH * (len(text) - slim - broad) + 0.31 * slim + 0.88 * broad)


def shortened(text: str, width_px: float, font_px: float = 12) -> str:
    """*text*, or its beginning and its end, whichever fits: a name ends with its number."""
    if text_px(text, font_px) <= width_px:
        return text
    room = max(int(width_px / (font_px * _GLYPH)), 4)
    tail = min(room, len(text)) // 3
    return f"{text[: room - tail - 1]}…{text[-tail:]}"


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A line of a legend: how something is drawn, in a field of 16 by 10 at a place; its name."""

    swatch: Callable[[float, float], Markup]
    name: str


def legend(entries: Iterable[LegendEntry], width: float) -> tuple[Markup, float]:
    """All entries side by side as far as they fit, and how high that is."""
    x, y = 0.0, 0.0
    parts = []
    for entry in entries:
        wide = 22 + text_px(entry.name)
        if x and x + wide > width:
            x, y = 0.0, y + 19
        parts += [entry.swatch(x, y + 2), label(x + 22, y + 11, entry.name)]
        x += wide + 18
    return join(*parts), y + 19 if parts else 0.0


@dataclass(frozen=True, slots=True)
class Plot:
    """The field of a chart: its edges in pixels are those of its two scales."""

    across: Scale
    up: Scale

    def axes(
        self,
        seconds: Sequence[tuple[float, str]],
        values: Sequence[tuple[float, str]],
    ) -> Markup:
        """Ticks below and to the left, with a fine rule for each value."""
        left, right = self.across.start, self.across.end
        bottom = self.up.start
        parts = []
        for value, said in values:
            y = self.up.at(value)
            parts.append(line((left, y), (right, y), "rule"))
            parts.append(label(left - 8, y + 4, said, "small figure end"))
        for second, said in seconds:
            x = self.across.at(second)
            parts.append(line((x, bottom), (x, bottom + 4), "axis"))
            parts.append(label(x, bottom + 18, said, "small figure middle"))
        parts.append(line((left, bottom), (right, bottom), "axis"))
        return join(*parts)


def apart(places: Sequence[float], least: float) -> list[float]:
    """The same places, in their order, but none closer than *least* to the one before."""
    moved: list[float] = []
    for place in places:
        moved.append(place if not moved else max(place, moved[-1] + least))
    return moved
