"""
The group `rlmm tier`, and its commands that copy segments.

Nothing imports it.

- `adopt`: `rlmm tier run --adopt`, and `rlmm tier adopt`.
- `command`: The group, with `plan`, `run`, `status`, `pause` and `sweep`.
"""
