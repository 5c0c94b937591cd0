"""Programs that show how rlmm is used; none is part of what is installed."""
