"""Ids: text of the application's own choosing, so nearly everything is one; NUL, nothing, and too much are not."""

from collections.abc import Iterator

from tests.hostile.case import Case, a_moment, parked, stored

ALPHABETS = {"ASCII": "x", "two-byte": "é", "three-byte": "時", "four-byte": "😀", "combining": "\u0301"}
ODD = [
    " ", "  ", ".", "..", "/", "\\", "../../etc/passwd", "C:\\con", "%00", "%s%s%n", "{0}", "${jndi:ldap://x}",
    "$(true)",
    "`true`", "'", "''", '"', "' or 1=1 --", "'; drop table jobs; --", "\\'", "$1", "$$", "<script>alert(1)</script>",
    "null", "None", "undefined", "NaN", "true", "0", "-1", "1e9", "__proto__", "constructor", "{}", "[]", '{"id": "x"}',
    "\ufeff", "\ufeffx", "\u200b", "\u200d", "\u202etfel", "\u2066x\u2069", "\u00ad", "\u00a0", "\u2028", "\u2029",
    "\u3000", "\ufffd", "\ufffe", "\uffff", "\U0001ffff", "\U0010fffd", "\ue000", "e\u0301", "\u00e9", "ﬀ", "ſ", "İ",
    "ı",
    "ß", "ẞ", "K", "Å", "👩‍👩‍👧", "🇩🇪", "שלום", "مرحبا", "\u0e01\u0e33" * 30, "Z\u0351\u0351\u0351" * 40, "a" * 200,
    "#", "*",
    "due.event.#", "amq.rabbitmq.reply-to", "job\nline two", "a\r\nX-Evil: 1", "\x1b[31mred", "x\x08\x08y", "\x7f",
]  # fmt: skip


def cases() -> Iterator[Case]:
    yield parked("no id", "id", b'{"at": "2030-06-01T12:00:00Z"}')
    yield parked("an empty id", "id", a_moment(id=""))
    for number, text in enumerate(ODD):
        yield stored(f"odd id {number} {text[:30]!r}", a_moment(id=text))
    for code in range(1, 32):
        yield stored(f"control character {code:02x} in the id", a_moment(id=f"control {chr(code)} {code}"))
    for code in range(0x80, 0xA0, 4):
        yield stored(f"control character {code:02x} in the id", a_moment(id=f"control {chr(code)} {code}"))
    for alphabet, letter in ALPHABETS.items():
        for length in (199, 200):
            yield stored(f"an id of {length} {alphabet} characters", a_moment(id="n" + letter * (length - 1)))
        for length in (201, 256, 1000, 20_000):
            yield parked(f"an id of {length} {alphabet} characters", "id", a_moment(id=letter * length))
        yield stored(f"a cancel of 200 {alphabet} characters", {"id": "c" + letter * 199}, key="schedule.cancel")
        yield parked(f"a cancel of 201 {alphabet} characters", "id", {"id": letter * 201}, key="schedule.cancel")
    for where, text in {"alone": "\0", "first": "\0x", "last": "x\0", "inside": "a\0b", "many": "\0" * 200}.items():
        yield parked(f"NUL in the id, {where}", "id", a_moment(id=text))
        yield parked(f"NUL in a cancel's id, {where}", "id", {"id": text}, key="schedule.cancel")
    yield from _half_pairs()


def _half_pairs() -> Iterator[Case]:
    for what, text in {"high": "\\ud800", "low": "\\udfff", "reversed": "\\ude00\\ud83d"}.items():
        body = f'{{"id": "{text}", "at": "2030-06-01T12:00:00Z"}}'.encode()
        yield parked(f"half a surrogate pair in the id, {what}", "id", body)
        yield parked(f"half a surrogate pair in a cancel's id, {what}", "id", f'{{"id": "{text}"}}'.encode(),
                     key="schedule.cancel")  # fmt: skip
    yield stored("a surrogate pair in the id", b'{"id": "\\ud83d\\ude00 @ID@", "at": "2030-06-01T12:00:00Z"}')
