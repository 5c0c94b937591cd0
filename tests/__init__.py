"""The tests. Which folder a test belongs in is said in README.md beside this file."""
