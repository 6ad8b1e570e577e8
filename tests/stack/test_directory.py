"""One living holder at a time, and a clean start for the next."""

import os
from pathlib import Path

import pytest

from stack.directory import claim, clean_up_after_the_dead, run_directory
from stack.errors import DirectoryInUseError


def test_a_second_claim_is_refused_and_names_the_holder(directory: Path) -> None:
    first = claim(directory)
    (directory / "precious").touch()

    with pytest.raises(DirectoryInUseError, match=f"in use by process {os.getpid()}"):
        claim(directory)

    assert (directory / "precious").exists()
    first.release()


def test_a_new_claim_finds_the_directory_empty_but_for_the_logs(directory: Path) -> None:
    first = claim(directory)
    elsewhere = first.room_elsewhere(directory.parent)
    (directory / "data" / "deep").mkdir(parents=True)
    (directory / "logs").mkdir()
    first.release()

    second = claim(directory)

    assert {entry.name for entry in directory.iterdir()} == {"lock", "logs"}
    assert not elsewhere.exists()
    second.release()


def test_cleaning_up_after_the_dead_spares_the_living(directory: Path) -> None:
    living, dead, below = claim(directory / "living"), claim(directory / "dead"), claim(directory / "dead" / "below")
    for claimed in (living, dead, below):
        (claimed.path / "file").touch()
    below.release()
    dead.release()

    clean_up_after_the_dead(directory)

    assert (living.path / "file").exists()
    assert [entry.name for entry in dead.path.iterdir()] == ["lock"]
    living.release()


def test_runs_of_the_same_name_get_directories_of_their_own(directory: Path) -> None:
    with run_directory("test", directory) as first, run_directory("test", directory) as second:
        assert (first.name, second.name) == ("test", "test-2")
    with run_directory("test", directory) as third:
        assert third == first
