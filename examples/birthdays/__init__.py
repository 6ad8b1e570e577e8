"""Greets people on their birthday at nine in the morning where they live: a complete application on top of Duebell.

It knows Duebell by its messages and webhooks alone, as any application does, and is meant to be copied. README.md in
this directory says what to copy, and why.
"""
