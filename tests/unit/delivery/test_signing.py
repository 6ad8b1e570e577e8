"""Standard Webhooks signatures: the published vector, rotation, and secrets that are no secrets."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from delivery.attempt import signing
from delivery.attempt.signing import Secrets, parse_secrets, signature_headers

# From the specification's reference implementations.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


def test_the_published_vector_is_reproduced() -> None:
    [signer] = parse_secrets(json.dumps({"x": SECRET}))["x"]
    headers = signature_headers(
        [signer], "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', datetime.fromtimestamp(1614265330, UTC)
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.parametrize("known_to_receiver", [SECRET, OTHER])
def test_while_a_secret_is_rotated_the_old_and_the_new_one_verify(known_to_receiver: str) -> None:
    signers = parse_secrets(json.dumps({"x": [SECRET, OTHER]}))["x"]
    body = '{"snow":"☃"}'.encode()
    headers = signature_headers(signers, "event-1", body, datetime.now(UTC))
    Webhook(known_to_receiver).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(known_to_receiver).verify(body + b" ", headers)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not JSON"),
        ("[]", "must be a JSON object"),
        ('{"a": 1}', "a: must be a secret"),
        ('{"a": []}', "a: must be a secret"),
        ('{"a": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1]}', "a: must be a secret"),
        ('{"a": "whsec_not base64!"}', "a: a secret is whsec_ and base64"),
        ('{"a": "whsec_c2hvcnQ="}', "a: a secret has 24 to 64 bytes, this one 5"),
    ],
)
def test_what_is_no_secret_is_refused_without_repeating_it(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        parse_secrets(text)
    assert "not base64" not in str(refused.value)
    assert "c2hvcnQ" not in str(refused.value)


def test_a_secret_added_to_the_file_is_known_without_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing, "FILE_CHECK_SECONDS", 0.0)
    file = tmp_path / "secrets.json"
    file.write_text(json.dumps({"old": SECRET}))
    secrets = Secrets.load(json.dumps({"from_variable": SECRET}), file)
    assert secrets.signers("new") is None
    file.write_text(json.dumps({"old": SECRET, "new": [OTHER, SECRET]}))
    assert len(secrets.signers("new") or ()) == 2
    assert secrets.signers("from_variable")
    assert secrets.stale_seconds == 0
    file.write_text("{ half a fi")
    assert secrets.signers("old"), "what was read before is kept"
    stale = secrets.stale_seconds
    assert stale > 0
    file.unlink()
    assert secrets.signers("old")
    assert secrets.stale_seconds > stale
    file.write_text(json.dumps({"old": SECRET}))
    assert secrets.signers("new") is None
    assert secrets.stale_seconds == 0


def test_a_file_that_cannot_be_read_at_start_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="WEBHOOK_SECRETS_FILE: cannot be read: No such file"):
        Secrets.load(None, tmp_path / "missing.json")
    with pytest.raises(ValueError, match="WEBHOOK_SECRETS: is not JSON"):
        Secrets.load("nonsense", None)
