"""
`rlmm tier verify`, `expire`, `audit`, `rebuild`, `backup` and `export`: a module each.

Nothing imports it.

- `export_question`: What `rlmm tier export` is asked.
- `options`: The flags of commands that take care of a tier.
- `verify`: `rlmm tier verify`.

Nothing imports it.
"""
