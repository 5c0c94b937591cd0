"""`rlmm tier verify`, `expire`, `audit`, `rebuild`, `backup` and `export`: a module each."""
