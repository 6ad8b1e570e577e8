"""Other schedulers on the same work: due jobs, each published to a durable queue and confirmed by the broker."""
