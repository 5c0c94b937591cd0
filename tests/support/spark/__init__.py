"""
Spark on this machine.

    sessions       one session for all tests of a process: a pytest plugin
    units_program  a program that runs units on Spark
    work_units     units of work that succeed, fail, hang or die
"""
