"""What a config is made of: kinds of values, and the base of its sections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

CONTRADICTION = "contradiction"
MOST_DOLLARS = 1_000_000  # of one endpoint an hour: far above any, and costs made of it stay numbers


def _whole_number(value: object) -> object:
    """Take 4 and 4.0 (pipelines turn the one into the other); refuse "4" and true."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("must be a whole number")
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("must be a whole number")
    return int(value)


Whole = Annotated[int, BeforeValidator(_whole_number)]
Count = Annotated[Whole, Field(ge=1)]
Rounds = Annotated[Count, Field(le=100)]
Level = Annotated[Count, Field(le=10_000)]
Port = Annotated[Count, Field(le=65_535)]
Number = Annotated[float, Strict()]
Positive = Annotated[Number, Field(gt=0, allow_inf_nan=False)]
Price = Annotated[Positive, Field(le=MOST_DOLLARS)]
Flag = Annotated[bool, Strict()]
Word = Annotated[str, Field(pattern=r"^\S+$", description="one word, without spaces")]


class Contradiction(NamedTuple):
    """What fields of a section can't say together.

    `fields` are those that were looked at, dotted (`variants.id` is the id of any variant): where one of them is
    wrong by itself, nothing can be said about the others.
    """

    fields: tuple[str, ...]
    text: str


class Section(BaseModel):
    """Base of every part of the config."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def contradictions(self) -> Iterator[Contradiction]:
        """All that its fields can't say together, not the first only: a person hears of everything at once."""
        return iter(())

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        found = [
            InitErrorDetails(type=PydanticCustomError(CONTRADICTION, "{text}", said._asdict()), input=None)
            for said in self.contradictions()
        ]
        if found:
            raise ValidationError.from_exception_data(type(self).__name__, found)
        return self


def section_in(annotation: Any) -> type[Section] | None:
    """The section that a field holds, by itself or in a list; None where it holds plain values."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = section_in(inner)
        if found:
            return found
    return None
