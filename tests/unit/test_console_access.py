"""Who may use the console: users, passwords, sessions and the limit on log-ins."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from console.access.attempts import BURSTS, MAX_KEYS, SECONDS_PER_TRY, AttemptLimit
from console.access.passwords import PasswordHash, hash_password
from console.access.sessions import SessionKey
from console.access.tokens import TokenHash, make_token
from console.access.users import Role, User, parse_users, user_of_proxy, user_of_token
from console.settings import ConsoleSettings
from consumer.settings import MAX_PAYLOAD_LIMIT_BYTES, ConsumerSettings
from shared.errors import CannotStart

NOW = datetime(2026, 7, 10, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
PASSWORD = "correct horse"
HASH = hash_password(PASSWORD)
ALICE = User("alice", Role.OPERATOR, sees_payloads=True, password=HASH)
STORES: dict[str, Any] = {"database_url": "postgresql://u@h/d", "amqp_url": "amqp://u@h/"}


def settings(**given: Any) -> ConsoleSettings:
    return ConsoleSettings(**STORES, **given)


def test_the_console_takes_no_larger_payloads_than_a_consumer_may_take() -> None:
    with pytest.raises(ValidationError):
        settings(max_payload_bytes=MAX_PAYLOAD_LIMIT_BYTES + 1)
    with pytest.raises(ValidationError):
        ConsumerSettings(**STORES, max_payload_bytes=MAX_PAYLOAD_LIMIT_BYTES + 1)


def test_a_hash_fits_its_password_alone_and_survives_being_written() -> None:
    read = PasswordHash.parse(str(HASH))
    assert read == HASH
    assert read.fits(PASSWORD)
    assert not read.fits("correct horsf")
    assert not read.fits("x" * 2000)
    assert hash_password(PASSWORD) != HASH, "each hash has a salt of its own"


@pytest.mark.parametrize(
    "text",
    [
        PASSWORD,
        "scrypt.1000.8.1.c2FsdHNhbHQ.aGFzaA",  # not a power of two
        "scrypt.1073741824.8.1.c2FsdHNhbHQ.aGFzaA",  # would take a terabyte
        "scrypt.16384.8.1000.c2FsdHNhbHQ.aGFzaA",
        "scrypt.16384.8.1.c2Fs.aGFzaA",  # a salt of three bytes
        "scrypt.a.8.1.c2FsdHNhbHQ.aGFzaA",
    ],
)
def test_what_is_no_hash_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="hash") as refused:
        PasswordHash.parse(text)
    assert text not in str(refused.value)


def test_users_are_read_from_lines_and_spaces() -> None:
    users = parse_users(f"# people on call\nalice:operator+payloads:{HASH} bob:viewer:-\n")
    assert users == {"alice": ALICE, "bob": User("bob", Role.VIEWER, sees_payloads=False)}
    assert (users["alice"].may_act, users["bob"].may_act) == (True, False)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("alice:operator", "entry 1 is not of the form"),
        ("alice:admin:-", "alice: the rights are"),
        ("alice:viewer+everything:-", "alice: the rights are"),
        ("alice:viewer:secret", "alice: is not a hash"),
        ("bob:viewer:- bob:viewer:-", "bob is there twice"),
        ("a<b>:viewer:-", "entry 1 is not of the form"),
    ],
)
def test_a_wrong_entry_is_named_and_its_password_is_not(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        parse_users(text)
    assert "secret" not in str(refused.value)


def test_a_session_ends_by_time_by_a_new_password_and_by_a_change_of_its_text() -> None:
    key = SessionKey("key")
    cookie = key.begin(ALICE, NOW, HOUR)
    session = key.read(cookie)
    assert session is not None
    assert session.user == "alice"
    assert key.is_valid(cookie, session, ALICE, NOW)
    assert SessionKey("key").is_valid(cookie, session, ALICE, NOW), "a replica with the same key takes it"

    assert not key.is_valid(cookie, session, ALICE, NOW + HOUR)
    assert not key.is_valid(cookie, session, User("alice", Role.OPERATOR, True, hash_password(PASSWORD)), NOW)
    assert not SessionKey().is_valid(cookie, session, ALICE, NOW)
    assert not key.is_valid(cookie[:-1] + ("A" if cookie[-1] != "A" else "B"), session, ALICE, NOW)
    later = key.begin(ALICE, NOW, 2 * HOUR)
    forged = later.partition(".")[0] + "." + cookie.partition(".")[2]
    longer = key.read(forged)
    assert longer is not None
    assert not key.is_valid(forged, longer, ALICE, NOW)


@pytest.mark.parametrize("cookie", ["", ".", "e30.x", "W10.x", "x" * 5000, "bnVsbA.x", "\xff.x"])
def test_a_cookie_that_cannot_be_read_is_no_session(cookie: str) -> None:
    assert SessionKey("key").read(cookie) is None


def test_the_token_of_a_form_belongs_to_one_session() -> None:
    key = SessionKey("key")
    tokens = {key.form_token("alice", "1"), key.form_token("alice", "2"), key.form_token("bob", "1")}
    assert len(tokens) == 3


def test_after_some_wrong_passwords_a_user_waits_and_others_do_not() -> None:
    limit = AttemptLimit()
    for _ in range(BURSTS[0]):
        assert limit.seconds_to_wait("alice", "10.0.0.1", 0.0) == 0
        limit.count_failure("alice", "10.0.0.1", 0.0)
    assert limit.seconds_to_wait("alice", "10.0.0.1", 0.0) == SECONDS_PER_TRY
    assert limit.seconds_to_wait("alice", "10.0.0.2", 0.0) == 0
    assert limit.seconds_to_wait("bob", "10.0.0.1", 0.0) == 0
    assert limit.seconds_to_wait("alice", "10.0.0.1", SECONDS_PER_TRY) == 0


def test_an_address_that_tries_many_users_waits_for_all_of_them() -> None:
    limit = AttemptLimit()
    for number in range(BURSTS[1]):
        limit.count_failure(f"user{number}", "10.0.0.1", 0.0)
    assert limit.seconds_to_wait("alice", "10.0.0.1", 0.0) > 0
    assert limit.seconds_to_wait("alice", "10.0.0.2", 0.0) == 0


def test_people_who_log_in_from_one_address_are_not_taken_for_one_who_guesses() -> None:
    limit = AttemptLimit()
    for number in range(3 * BURSTS[2]):
        assert limit.seconds_to_wait(f"user{number}", "10.0.0.1", 0.0) == 0
        assert limit.seconds_to_wait("alice", "10.0.0.2", 0.0) == 0
        for user, address in ((f"user{number}", "10.0.0.1"), ("alice", "10.0.0.2")):
            limit.count_failure(user, address, 0.0)
            limit.forget(user, address, 0.0)
    limit.count_failure("mallory", "10.0.0.3", 0.0)
    limit.forget("alice", "10.0.0.3", 0.0)
    assert limit._level(("user", "mallory"), 0.0) == 1


def test_the_memory_of_failures_is_bounded() -> None:
    limit = AttemptLimit()
    for number in range(MAX_KEYS):
        limit.count_failure(f"user{number}", f"10.0.{number // 256}.{number % 256}", 0.0)
    assert len(limit._levels) == MAX_KEYS


def test_a_proxy_names_listed_users_and_others_only_if_a_role_is_set_for_them() -> None:
    users = {"alice": ALICE}
    assert user_of_proxy("alice", users, None) == ALICE
    assert user_of_proxy("carol", users, None) is None
    assert user_of_proxy("carol", users, Role.VIEWER) == User("carol", Role.VIEWER, sees_payloads=False)
    assert user_of_proxy("carol\nalice", users, Role.OPERATOR) is None


def test_a_person_who_bears_the_name_of_a_program_gets_none_of_its_rights() -> None:
    users = parse_users(f"deploys:operator+payloads:{TokenHash.of(make_token())}")
    assert user_of_proxy("deploys", users, None) is None
    assert user_of_proxy("deploys", users, Role.VIEWER) is None


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"console_users": SecretStr("bob:viewer:-")},  # no password, and no proxy
        {"console_trusted_proxies": "10.0.0.0/8"},  # no users, and no role for others
        {"console_open_on_loopback": True, "console_host": "0.0.0.0"},
        {"console_open_on_loopback": True, "console_host": "::"},
    ],
)
def test_it_does_not_start_without_users_or_open_to_a_network(given: dict[str, Any]) -> None:
    with pytest.raises(CannotStart, match="CONSOLE_"):
        settings(**given).read_users()


@pytest.mark.parametrize(
    "given",
    [
        {"console_users": SecretStr(f"alice:viewer:{HASH}")},
        {"console_trusted_proxies": "10.0.0.0/8", "console_proxy_role": "viewer"},
        {"console_trusted_proxies": "10.0.0.0/8", "console_users": SecretStr("bob:viewer:-")},
        {"console_open_on_loopback": True},
        {"console_open_on_loopback": True, "console_host": "::1"},
    ],
)
def test_it_starts_with_users_a_proxy_or_on_loopback(given: dict[str, Any]) -> None:
    settings(**given).read_users()


def test_the_address_of_the_console_gives_prefix_origin_and_secure_cookies() -> None:
    behind = settings(console_url="https://Ops.example.com/duebell/")
    assert (behind.prefix, behind.origin, behind.is_https) == ("/duebell", "https://ops.example.com", True)
    plain = settings()
    assert (plain.prefix, plain.origin, plain.is_https) == ("", None, False)


def test_a_token_names_its_user_and_is_no_password() -> None:
    token = make_token()
    users = parse_users(f"robot:operator:{TokenHash.of(token)} alice:viewer:{HASH} proxy:viewer:-")
    assert user_of_token(token, users) == users["robot"]
    assert users["robot"].password is None
    for wrong in ("", token[:-1], token + "x", str(TokenHash.of(token)), PASSWORD, "x" * 300):
        assert user_of_token(wrong, users) is None
    assert settings(console_users=SecretStr(f"robot:viewer:{TokenHash.of(token)}")).read_users()


@pytest.mark.parametrize("text", ["sha256.", "sha256.short", "sha256." + "é" * 43, "sha256." + "A" * 44])
def test_what_is_no_hash_of_a_token_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="robot") as refused:
        parse_users(f"robot:viewer:{text}")
    assert text not in str(refused.value)
