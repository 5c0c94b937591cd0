"""`rlmm snapshot`: its commands, and how a running service is asked."""
