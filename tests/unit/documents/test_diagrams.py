"""The diagrams of the documents: drawn without a script, and true to the code's tables of moves."""

import re
from xml.etree import ElementTree

import pytest

from delivery.model import LEGAL_MOVES
from shared.contract.job_status import JOB_MOVES
from tests.support.services import ROOT
from tools.site.diagrams import BadDiagram, draw, moves

SOURCES = re.findall(r"```mermaid\n(.*?)```", (ROOT / "docs/how-it-works.md").read_text(), re.DOTALL)
FLOWS = [source for source in SOURCES if source.startswith("sequenceDiagram")]
MACHINES = [source for source in SOURCES if source.startswith("stateDiagram")]


def test_there_are_five_flows_and_two_machines() -> None:
    assert (len(FLOWS), len(MACHINES)) == (5, 2)


@pytest.mark.parametrize("source", SOURCES)
def test_a_diagram_is_well_formed_and_shows_all_of_its_texts(source: str) -> None:
    drawn = ElementTree.fromstring(draw(source).replace(" data-search-exclude", ""))
    shown = {" ".join(text.itertext()) for text in drawn.iter() if text.tag.endswith("text")}
    for text in re.findall(r"^ *\w+-{1,2}(?:>>|x)\w+: (.+)$", source, re.MULTILINE):
        assert any(each.endswith(text) for each in shown), text
    assert not [line for line in drawn.iter() if any(value == "nan" for value in line.attrib.values())]


@pytest.mark.parametrize("line", ["App-->Rabbit: solid", "par and"])
def test_a_line_that_cannot_be_drawn_ends_the_build(line: str) -> None:
    with pytest.raises(BadDiagram, match=line):
        draw(f"sequenceDiagram\nparticipant App\nparticipant Rabbit\n{line}")


def test_the_states_of_a_job_move_as_the_code_has_it() -> None:
    table = {(str(source), str(target)) for source, targets in JOB_MOVES.items() for target in targets}
    assert moves(MACHINES[0]) == {*table, ("[*]", "pending")}


def test_the_states_of_a_delivery_move_as_the_code_has_it() -> None:
    table = {(str(source), str(target)) for source, targets in LEGAL_MOVES.items() for target in targets}
    assert moves(MACHINES[1]) == {*table, ("[*]", "PENDING")}
