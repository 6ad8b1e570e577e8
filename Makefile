# Everything a developer runs. Needs sh and make; the rest is set up on the way.

PY := .venv/bin/python
# What runs servers is told when make itself is killed, and ends them.
RUN := setpriv --pdeathsig TERM $(PY)
UV := .stack/uv/bin/uv
COMPILE := $(UV) pip compile --quiet --generate-hashes --no-header --python-version 3.11
# A warning ends the build.
SITE := NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs --quiet build --strict
CODE := $(wildcard cli console consumer producer delivery shared stack client examples bench tools tests)

# Without compiled tests, each process of a run compiles all of them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup prometheus extras demo birthdays up check test platforms compose mutants bench fuzz chaos lint types docs reference dashboards kubernetes contract audit sbom lock

help: ## what there is to run
	@echo "make <target>:"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-12s %s\n", $$1, $$2}'

setup: ## install what is missing: the virtual environment, and RabbitMQ (done by every other target, too)
	@sh stack/setup.sh

prometheus: ## install Prometheus, too: `make up` starts it where it is installed
	@sh stack/setup.sh prometheus

extras:
	@sh stack/setup.sh prometheus faketime node postgresql chromium curl kubectl atheris

demo: setup ## a few jobs from request to webhook, once, on a stack of its own
	@$(RUN) -m stack.demo

birthdays: setup ## an example application: a birthday and its greeting, on a stack of its own
	@$(RUN) -m stack.birthdays

up: setup ## the whole stack on this machine, until Ctrl-C
	@$(RUN) -m stack.up

check: setup lint types ## the inner loop: lint, types, import rules and the unit tests
	@echo "== unit tests"
	@EXAMPLES=20 $(RUN) -m pytest --numprocesses 2 --dist loadfile $(ARGS) tests/unit

test: extras lint types ## lint, types, import rules and all tests (ARGS="-k name -x" for pytest, WORKERS=3 at a time)
	@echo "== tests"
	@$(RUN) -m pytest --numprocesses $(or $(WORKERS),3) --dist loadgroup --no-loadscope-reorder --durations 10 \
		$(or $(ARGS),--cov --cov-report=)
	@$(if $(ARGS),,$(PY) -m tools.coverage_floor)

platforms: ## the two commands of the README on Debian 12, 13 and testing, as root (ONLY=trixie, TESTS="unit integration")
	@sh stack/setup.sh debootstrap
	@$(RUN) -m tools.platforms $(if $(ONLY),--only "$(ONLY)") $(if $(TESTS),--tests "$(TESTS)")

compose: setup ## docker-compose.yml run for real, as root: without an engine, with one from Debian's packages
	@$(RUN) -m tools.compose

mutants: setup ## known mistakes, one at a time in a copy: each must make a test fail (ARGS="NAME …", WORKERS=2)
	@WORKERS=$(or $(WORKERS),2) $(RUN) -m tests.mutants $(ARGS)

fuzz: ## random bytes for the parser of commands, random text for the rules (SECONDS=60 each)
	@sh stack/setup.sh atheris
	@for target in commands rules; do \
		echo "== fuzzing $$target"; $(RUN) -m tests.fuzz.$$target -max_total_time=$(or $(SECONDS),60) || exit 1; \
	done

bench: setup ## benchmarks, each beside the ceiling of its machine (ONLY=firing to choose, PEERS=1, FULL=1)
	@$(RUN) -m bench $(if $(ONLY),--only $(ONLY)) $(if $(FULL),--full) $(if $(PEERS),--peers) $(ARGS)

chaos: extras ## known faults on a stack of its own, and a check of every promise (MINUTES=10 SEED=n CLUSTER=1)
	@$(RUN) -m tests.chaos$(if $(CLUSTER),.cluster) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) \
		$(if $(FAULTS),--faults $(FAULTS)) $(if $(RATE),--rate $(RATE))

lint: setup
	@echo "== lint"
	@.venv/bin/ruff check .
	@echo "== format"
	@.venv/bin/ruff format --check .
	@echo "== import rules"
	@.venv/bin/lint-imports --no-logo
	@echo "== compose file"
	@.venv/bin/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
	@echo "== Dockerfile"
	@.venv/bin/hadolint Dockerfile && echo ok
	@echo "== documents"
	@$(SITE)
	@echo "== GitHub's files"
	@.venv/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@.venv/bin/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/feature.yml
	@.venv/bin/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	@.venv/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml

types: setup
	@echo "== types"
	@.venv/bin/mypy $(CODE)

docs: setup ## build the documents' site into .stack/site (reads without a network)
	@$(SITE)
	@echo "the site: file://$(CURDIR)/.stack/site/index.html"

reference: setup ## write docs/reference anew after a change in settings, metrics, log events, messages or commands
	@$(PY) -m tools.reference

dashboards: setup ## write Grafana's dashboards anew after a change in tools/dashboards/pages
	@$(PY) -m tools.dashboards

kubernetes: setup ## write the alerts for Kubernetes anew after a change in deploy/prometheus/alerts.yml
	@$(PY) -m tools.kubernetes

screenshots: setup ## make the pictures of docs/console.md anew (ARGS="now schedules", or ARGS="--whole DIRECTORY" to look at)
	@sh stack/setup.sh chromium
	@$(RUN) -m tools.screenshots $(ARGS)

contract: setup ## write docs/asyncapi.yaml and docs/schemas anew after a change in shared/contract/messages.py
	@$(PY) -m tools.contract

audit: setup ## ask whether a vulnerability is known in what a release installs (STRICT=1: fail if no source answers)
	@.ci/audit $(ARGS)

sbom: setup ## write the software bill of materials of a release to sbom.cdx.json
	@.ci/sbom sbom.cdx.json

lock: setup ## pin the requirements anew after a change in pyproject.toml (ARGS=--upgrade for newer versions)
	@test -x $(UV) || { $(PY) -m venv .stack/uv && .stack/uv/bin/python -m pip install --quiet uv; }
	@$(COMPILE) $(ARGS) pyproject.toml --output-file requirements.lock
	@$(COMPILE) $(ARGS) pyproject.toml --group dev --output-file requirements-dev.lock
	@$(COMPILE) $(ARGS) --group fuzz --output-file requirements-fuzz.lock
	@$(COMPILE) $(ARGS) --group celery --output-file requirements-celery.lock
	@$(COMPILE) $(ARGS) client/pyproject.toml --output-file client/requirements.lock
	@$(COMPILE) $(ARGS) client/pyproject.toml --extra postgres --output-file client/requirements-postgres.lock
	@sed -n 's/^requires = \["\(.*\)"\]/\1/p' client/pyproject.toml | $(COMPILE) $(ARGS) - --output-file client/requirements-build.lock
