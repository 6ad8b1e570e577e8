-- What a process tells about itself besides that it runs, such as the hosts that it does not call for now.
alter table service_instances add column details json;
