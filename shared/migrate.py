"""`python -m shared.migrate` migrates the schema to the version of this release: see shared/postgres/migrate.py."""

from shared.postgres.migrate import main

if __name__ == "__main__":
    main()
