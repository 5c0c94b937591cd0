# Only what this project uses; the library has no annotations that are marked as complete.
