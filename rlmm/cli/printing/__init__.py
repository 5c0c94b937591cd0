"""
How an answer is printed: one printer for each output, all fed the same way, item by item.

By module, bottom up:

    settings   what the flags say, and the terminal
    cells      single values as people read them
    printers   what every printer does, and which one is meant
    table      for people: columns, or one screen
    documents  JSON, JSON lines and YAML
    separated  CSV and TSV
    writing    an answer, its items one by one, through a printer

Invariants:

- Nothing waits for what comes later: a row is out as soon as it is known, but for the first page of
  a table, whose widths it gives.
- What is printed is data; all else goes to standard error, and not from here.
- A document that ends early does not look whole.

May be imported by `rlmm.cli.common`, `rlmm.cli.queries`.

- `answer`: What a command has found, in the one form that every way of printing takes.
"""
