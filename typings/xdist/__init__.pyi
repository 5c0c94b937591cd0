# The library has annotations but does not say so to type checkers: what is used is declared here.
