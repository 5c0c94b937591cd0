"""
Progress and reports of the jobs of a tier, in one form for all of them.

May be imported by every package above it.

- `progress`: The progress of a job, and the meter that counts it.
- `report`: The parts that all reports share: findings, sampled and counted, and short lists.
"""
