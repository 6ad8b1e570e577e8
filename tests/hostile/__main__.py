"""Writes the committed corpora anew: `python -m tests.hostile`."""

from tests.hostile import corpus, events

for family, text in {**corpus.generated(), "events": events.generated()}.items():
    (corpus.DIRECTORY / f"{family}.jsonl").write_text(text)
