"""
`rlmm snapshot`: its commands, and how a running service is asked.

May be imported by `rlmm.cli.service`, `rlmm.cli.tier_maintenance`.

- `command`: `rlmm snapshot`.
- `folders`: Which folders of snapshots a folder stands for.
- `service_requests`: How a running service is asked for snapshots, and how it answers.
- `write`: `rlmm snapshot write`.
"""
