"""
`rlmm tier`: the group, its jobs that move segments, and what its options share.

Nothing imports it.

- `adopt`: `rlmm tier run --adopt`, and `rlmm tier adopt`.
- `command`: `rlmm tier`.

Nothing imports it.
"""
