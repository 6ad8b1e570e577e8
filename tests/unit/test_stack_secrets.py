"""A stack tells the consumer the names of exactly those secrets that delivery knows."""

import json
from pathlib import Path

from stack.webhook_secrets import secret_settings

DEMO = {"demo": "whsec_demo"}


def test_without_secrets_of_the_user_there_is_the_one_of_the_receiver() -> None:
    consumer, delivery = secret_settings(DEMO, {})
    assert consumer == {"WEBHOOK_SECRET_NAMES": "demo"}
    assert delivery == {"WEBHOOK_SECRET_NAMES": "demo", "WEBHOOK_SECRETS": json.dumps(DEMO)}


def test_the_secrets_of_the_user_are_beside_it_and_named(tmp_path: Path) -> None:
    file = tmp_path / "secrets.json"
    file.write_text('{"shop": "whsec_shop"}')
    given = {"WEBHOOK_SECRETS": '{"billing": "whsec_b"}', "WEBHOOK_SECRETS_FILE": str(file)}
    consumer, delivery = secret_settings(DEMO, given)
    assert consumer == {"WEBHOOK_SECRET_NAMES": "demo,billing,shop"}
    assert json.loads(delivery["WEBHOOK_SECRETS"]) == {**DEMO, "billing": "whsec_b"}


def test_names_that_the_user_sets_win_and_what_cannot_be_read_is_passed_on(tmp_path: Path) -> None:
    consumer, _ = secret_settings(DEMO, {"WEBHOOK_SECRET_NAMES": "demo"})
    assert consumer == {"WEBHOOK_SECRET_NAMES": "demo"}
    assert secret_settings(DEMO, {"WEBHOOK_SECRETS": "nonsense"}) == ({}, {"WEBHOOK_SECRETS": "nonsense"})
    missing = {"WEBHOOK_SECRETS_FILE": str(tmp_path / "none.json")}
    assert secret_settings(DEMO, missing)[0] == {"WEBHOOK_SECRET_NAMES": "demo"}
