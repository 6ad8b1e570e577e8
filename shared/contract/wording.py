"""Says what is wrong with a field of a message in words for any language: the types are those of JSON. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

# The error does not name the owner: another user has no right to know it.
NOT_THE_OWNER = "user_id: the job belongs to another user"

# How many errors of a message are told, and how much of each: they are headers of its parked copy.
MAX_ERRORS = 10
MAX_ERROR_CHARACTERS = 300

_WORDS = {
    "extra_forbidden": "is not a field of this command",
    "missing": "is missing",
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a whole number of 64 bits",
    "float_type": "must be a number",
    "finite_number": "must be a number",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "list_type": "must be a list",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
}
# How pydantic begins its messages about text, lists, objects and all else.
_SUBJECT = re.compile(r"(Input|String|List|Dictionary|Value) should ")


def limit_errors(errors: Sequence[str]) -> tuple[str, ...]:
    """Return the first MAX_ERRORS of them, each cut after MAX_ERROR_CHARACTERS."""
    return tuple(error[:MAX_ERROR_CHARACTERS] for error in errors[:MAX_ERRORS])


def describe_problem(problem: Mapping[str, Any]) -> str:
    """Return one of pydantic's problems as a text that begins with the field."""
    field = ".".join(str(part) or "''" for part in problem["loc"])[:100]
    message = str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] == "too_long" and isinstance(problem["input"], str):
        message = f"must have at most {problem['ctx']['max_length']} characters"
    text = _WORDS.get(problem["type"]) or _SUBJECT.sub("must ", message, count=1)
    return f"{field}: {text}" if field else text
