"""`python -m shared.topology` declares the exchanges and queues: see shared/amqp/topology.py."""

from shared.amqp.topology import main

if __name__ == "__main__":
    main()
