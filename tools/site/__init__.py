"""The documents' site: `make docs` builds it from mkdocs.yml, and this package holds what mkdocs calls on the way."""
