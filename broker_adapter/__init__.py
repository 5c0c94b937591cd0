"""The broker's side of rlmm; so far the exceptions that a broker expects for our errors."""
