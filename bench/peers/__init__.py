"""Other schedulers on the same work: due jobs published, due jobs among many that are not, and how late they are."""
