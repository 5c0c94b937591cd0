"""
The report of a demo: one page with its pictures, made of plain values. Pure.

By module, bottom up:

    markup        elements and escaping, for pages and pictures alike
    numbers       numbers as people read them, and the ticks of an axis
    story         the values: screens, figures, maps of the tier, curves, samples
    palette       the colours, in light and in dark, and how the parts of a picture are drawn
    svg           what every picture has: a frame, a legend, axes, labels that do not collide
    placing       from the segments of a disk and of a tier to ranges of one kind each
    folding       many segments in few pixels: what of them is drawn
    tier_map      which offsets lie on the brokers' disks, and which in the tier
    replay_chart  how fast a state is there again
    stall_chart   how long readers waited meanwhile
    tables        the same values as tables
    screens       one screen of the demo: its claim, its commands, what they said
    page_style    how the page looks
    page          the page
    pictures      two pictures that stand alone

Invariants:

- Every number comes from the values; equal values give the same bytes.
- Whatever the values hold, the page is well-formed XML, asks no other place for anything, runs no
  script, and stays small: what is finer than a pixel is drawn together, but never a gap away.
- No colour carries a meaning alone: every one is named in a legend, and every picture has a table.

May be imported by `rlmm_demo.screens`.
"""
