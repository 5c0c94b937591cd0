"""
`rlmm snapshot`: its commands, and how a running service is asked.

May be imported by `rlmm.cli.service`, `rlmm.cli.tier_maintenance`.

- `command`: `rlmm snapshot`.
- `folders`: The folders of snapshots below a folder.
- `service_requests`: Requests for snapshots to a running service, and its answers.
- `write`: `rlmm snapshot write`.
"""
