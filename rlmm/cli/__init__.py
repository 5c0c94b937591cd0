"""
The command line: what a person or a script types, and how answers are printed.

Commands decide nothing and format nothing: they ask the layers below and hand the answer to an
output.
"""
