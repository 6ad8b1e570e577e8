"""Which test runs which block. What is not run is listed here, and says so to the reader."""

# Pages whose programs and commands test_blocks.py runs, from the first block to the last.
RUN_HERE = (
    "README.md",
    "docs/how-to/remind-me.md",
    "docs/how-to/every-weekday.md",
    "docs/how-to/cancel.md",
    "docs/how-to/when-is-my-next.md",
    "docs/how-to/schedules-in-a-file.md",
    "docs/how-to/webhooks.md",
    "docs/how-to/django.md",
    "docs/how-to/fastapi.md",
    "docs/how-to/node.md",
    "docs/how-to/pika.md",
    "docs/delayed-messages.md",
    "examples/birthdays/README.md",
    "client/README.md",
)

_CONSUMER = "contract/test_examples.py::test_the_consumer_does_with_an_example_what_the_text_says"
_BIRTHDAYS = "birthdays/test_event_types.py::test_the_event_type_of_the_readme_works"
_DIAGRAMS = "unit/documents/test_diagrams.py::test_a_diagram_is_well_formed_and_shows_all_of_its_texts"
# Blocks that other tests run: page, language, and the test.
RUN_ELSEWHERE = {
    ("README.md", "json"): _CONSUMER,
    ("docs/how-to/remind-me.md", "json"): _CONSUMER,
    ("docs/how-to/every-weekday.md", "json"): _CONSUMER,
    ("docs/messages.md", "json"): _CONSUMER,
    (
        "docs/recurrence.md",
        "json",
    ): "unit/recurrence/test_recipes.py::test_the_occurrences_of_a_recipe_are_those_of_the_document",
    ("docs/delivery.md", "json"): "unit/delivery/test_docs.py::test_an_example_in_json_is_what_delivery_sends_or_reads",
    ("docs/delivery.md", "python"): "unit/delivery/test_docs.py::test_the_example_verifies_what_is_signed",
    ("examples/birthdays/README.md", "python"): _BIRTHDAYS,
    ("docs/command-line.md", "sh"): "cli/test_docs.py::test_every_example_of_the_page_runs",
    ("docs/command-line.md", "text"): "cli/test_docs.py::test_every_example_of_the_page_runs",
    ("docs/how-it-works.md", "mermaid"): _DIAGRAMS,
    (
        "docs/operations/kubernetes.md",
        "yaml",
    ): "kubernetes/test_overlays.py::test_an_overlay_of_ones_own_changes_what_it_names",
    (
        "docs/operations/install.md",
        "sh",
    ): "acceptance/test_install.py::test_the_page_about_installing_needs_no_superuser",
    ("docs/operations/tls.md", "sh"): "acceptance/test_tls.py::test_the_whole_journey_goes_over_tls",
    (
        "docs/operations/upgrading.md",
        "sh",
    ): "upgrade/test_rolling_upgrade.py::test_a_rolling_upgrade_from_0_1_0_and_back_loses_nothing",
    (
        "docs/operations/upgrading.md",
        "sql",
    ): "integration/test_schema.py::test_the_indexes_of_a_large_table_can_be_built_before_the_migration",
    (
        "docs/operations/backup.md",
        "sh",
    ): "acceptance/test_restore.py::test_a_restored_database_goes_on_beside_a_broker_that_is_newer",
}

# Lines of blocks that are run here, which are left out, because other tests do the same with more care.
LINES_RUN_ELSEWHERE = {
    "make demo": "documents/test_demo.py::test_the_demo_shows_what_the_readme_shows",
    "make up": "stack/test_up.py::test_only_one_stack_runs_and_after_a_kill_the_next_one_starts_clean",
    "python3 -m venv .stack/my-app && .stack/my-app/bin/pip install --quiet ./client": (
        "client/test_package.py::test_nothing_but_the_client_and_its_lock_is_installed"
    ),
    "pip install ./client": "client/test_package.py::test_nothing_but_the_client_and_its_lock_is_installed",
    "npm ci --silent": "examples/test_other_clients.py::test_what_the_publisher_asks_for_rings_at_the_listener_once",
}

# Blocks that no test runs. The paragraph before each says "Not run".
NOT_RUN = {
    ("docs/how-to/other-languages.md", "package main"),
    ("docs/delayed-messages.md", "rabbitTemplate.convertAndSend("),
    ("docs/delayed-messages.md", "Configure.With(activator)"),
    ("docs/delayed-messages.md", "var properties = new MessageProperties"),
    ("docs/delayed-messages.md", "services.AddMassTransit(x =>"),
    ("docs/how-to/other-languages.md", "import com.fasterxml.jackson.databind.ObjectMapper;"),
    ("docs/operations/kubernetes.md", "docker build --tag registry.example.com/duebell:0.1.0 ."),
    ("docs/operations/kubernetes.md", "kubectl --namespace duebell create secret generic duebell-operator \\"),
    ("docs/operations/kubernetes.md", "kubectl apply -k overlay --selector"),
}
