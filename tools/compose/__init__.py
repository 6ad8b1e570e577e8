"""`make compose`: docker-compose.yml run for real, on a machine with or without a container engine of its own."""
