"""What Prometheus reads of our own counters is what it would read of the library's."""

import prometheus_client
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from shared.tallies import Histogram, Tally

BOUNDS = (0.01, 0.5, 2.5)


def exposed(registry: CollectorRegistry) -> list[str]:
    lines = generate_latest(registry).decode().splitlines()
    return [line for line in lines if "_created" not in line]  # when a series began: the library's own addition


@given(st.lists(st.sampled_from(["2xx", "5xx", "timeout"]), max_size=20))
def test_a_tally_reads_like_a_counter(values: list[str]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    tally = Tally("calls", "By result", "result", ("2xx", "5xx"), ours)
    counter = prometheus_client.Counter("calls", "By result", ["result"], registry=theirs)
    for value in ("2xx", "5xx"):
        counter.labels(value)
    for value in values:
        tally.add(value)
        counter.labels(value).inc()
    assert exposed(ours) == exposed(theirs)


@given(st.lists(st.sampled_from([0.0, *BOUNDS, 0.3, 2.0, 99.0, -1.0]), max_size=20))
def test_a_histogram_reads_like_the_librarys(values: list[float]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    quick = Histogram("seconds", "Of calls", BOUNDS, ours)
    slow = prometheus_client.Histogram("seconds", "Of calls", buckets=BOUNDS, registry=theirs)
    for value in values:
        quick.observe(value)
        slow.observe(value)
    assert exposed(ours) == exposed(theirs)
