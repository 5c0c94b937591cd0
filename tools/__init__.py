"""
The tools that build and check the project. They are no part of it, and are not installed with it.
"""
