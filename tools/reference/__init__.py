"""Writes docs/reference from the code (`make reference`): settings, metrics, log events, messages and commands."""
