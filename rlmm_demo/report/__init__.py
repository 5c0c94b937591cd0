"""
The report of a demo: one page with its charts, made of plain values.

- `charts`: The three charts, by matplotlib.
- `markup`: Elements of the page, and escaping.
- `numbers`: Numbers as people read them.
- `page`: The page, and its style.
- `story`: The values of a report: screens, figures, maps of the tier, curves, samples.
- `tables`: The same values as tables.

Invariants: equal values give the same bytes; whatever the values hold, the page is well-formed XML,
asks no other place for anything and runs no script; every colour is named in a legend, and every
chart has a table.

May be imported by `rlmm_demo.screens`.
"""
