"""A small webhook receiver: shows what it got, and treats each idempotency key once, as a good receiver does."""
