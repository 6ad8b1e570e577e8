"""Kept messages, of `scheduler.parked` and `scheduler.unrouted`: how they are read, sent again and dropped."""
