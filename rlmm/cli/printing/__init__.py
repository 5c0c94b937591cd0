"""
The printing of an answer: one printer for each output, all fed the same way, item by item.

Invariants:

- No row waits for later rows: it is out as soon as it is known, but for the first page of
  a table, whose widths it gives.
- Only data is printed; all else goes to standard error, and not from here.
- A document that ends early does not look whole.

May be imported by `rlmm.cli.common`, `rlmm.cli.queries`.

- `answer`: The answer of a command, in one form for every printer.
- `cells`: Single values as people read them.
- `documents`: JSON, JSON lines and YAML.
- `printers`: An answer, its items one by one, through the chosen printer.
- `separated`: CSV and TSV.
- `settings`: The flags of a command, and the terminal.
- `table`: For people: columns, or one screen.
"""
