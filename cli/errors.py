"""The errors of the command line. Scripts tell them apart by the exit status.

Failure               1  refused, not found, or something needs attention
├── BadUsage          2  the command line itself is wrong
├── Unreachable       3  Postgres or RabbitMQ cannot be reached
└── NoAnswer          4  the command was sent, and no reply came in time
"""


class Failure(Exception):
    status = 1


class BadUsage(Failure):
    status = 2


class Unreachable(Failure):
    status = 3


class NoAnswer(Failure):
    status = 4
