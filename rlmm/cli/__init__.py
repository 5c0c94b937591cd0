"""
The command line: the commands that a person or a script types, and the printing of answers.

Commands decide nothing: they ask the layers below and hand the answer to `printing`, or lay out a
short table with `common.output`.

May be imported by `rlmm.__main__`.

- `answer_schemas`: The JSON schemas of answers, generated from their types.
- `common`: The common part of all commands.
- `main`: The command `rlmm`.
- `printing`: The printing of answers.
- `queries`: Commands that query the tiered state.
- `service`: `rlmm serve`.
- `snapshot`: `rlmm snapshot`.
- `tier`: `rlmm tier`.
- `tier_common`: The common part of the commands of `rlmm tier`.
- `tier_maintenance`: `rlmm tier verify`, `expire`, `audit`, `rebuild`, `backup` and `export`.
"""
