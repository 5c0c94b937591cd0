"""
The command line: what a person or a script types, and how answers are printed.

Commands decide nothing and format nothing: they ask the layers below and hand the answer to an
output.

May be imported by `rlmm.__main__`.

- `main`: The command `rlmm`.
- `answer_schemas`: The JSON schemas of answers, generated from their types.
- `common`: What all commands share.
- `partial_metadata`: What commands tell where a part of the metadata is all that can be read.
- `printing`: How an answer is printed.
- `queries`: Commands that query the tiered state.
- `service`: `rlmm serve`.
- `snapshot`: `rlmm snapshot`.
- `tier`: `rlmm tier`.
- `tier_common`: What the commands of `rlmm tier` share.
- `tier_maintenance`: `rlmm tier verify`, `expire`, `audit`, `rebuild`, `backup` and `export`.
"""
