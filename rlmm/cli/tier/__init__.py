"""`rlmm tier`: the group, its jobs that move segments, and what its options share."""
