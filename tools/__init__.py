"""The tools that build and check the project; they are not installed with it."""
