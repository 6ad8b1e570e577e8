-- The W3C trace context of the request, for the events and calls that come of it.

alter table jobs add column traceparent text check (length(traceparent) = 55);
alter table deliveries add column traceparent text check (length(traceparent) = 55);
