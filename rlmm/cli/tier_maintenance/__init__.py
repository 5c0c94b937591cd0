"""
The maintenance commands of `rlmm tier`, one in each module.

Nothing imports it.

- `audit`: `rlmm tier audit`.
- `backup`: `rlmm tier backup export` and `import`.
- `expire`: `rlmm tier expire`.
- `export`: `rlmm tier export`.
- `export_question`: The question of `rlmm tier export`, from its flags.
- `options`: The flags of these commands.
- `rebuild`: `rlmm tier rebuild`.
- `verify`: `rlmm tier verify`.
"""
