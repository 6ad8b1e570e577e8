"""Mistakes that would hurt, made one at a time in a copy of the code, and the tests that must notice each of them:
`make mutants`. The list is data, and finds its places in the code by their text: so it can be run again after the code
has moved.
"""
