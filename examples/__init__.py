"""Programs that show how rlmm is used; none of them is installed."""
