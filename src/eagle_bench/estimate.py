"""How long a run takes and what it costs, before it: a range, from assumptions that are said. Pure arithmetic.

Nothing here is measured. A request takes its first token and then one step a token; `concurrency` of them run side by
side, so a cell takes requests × time ÷ concurrency. Endpoints are paid from deploy to teardown.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from eagle_bench.config import Config, Workload
from eagle_bench.results import Record
from eagle_bench.units import NARROW_SPACE
from eagle_bench.workload.needs import needs

FEWEST_ROUNDS = 3  # an early stop never comes before the third round


class Range(Record):
    """What something lies between."""

    low: float = Field(ge=0, description="at least")
    high: float = Field(ge=0, description="at most")

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if self.low > self.high:
            raise ValueError(f"begins above its end: {self.low:g} and {self.high:g}")
        return self

    def __add__(self, other: Range) -> Range:
        return Range(low=self.low + other.low, high=self.high + other.high)

    def __mul__(self, factor: float) -> Range:
        return Range(low=self.low * factor, high=self.high * factor)

    def shown(self, unit: str) -> str:
        """As people write it, to two digits: "0.7 to 7.6 h"."""
        low, high = (f"{float(f'{end:.2g}'):,.10g}".replace(",", NARROW_SPACE) for end in (self.low, self.high))
        return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"

    def hours_shown(self) -> str:
        """Hours, with what is below one in minutes or seconds: "0.7 h" is said as "42 min"."""
        low, high = _hour_unit(self.low), _hour_unit(self.high)
        if low == high:
            return (self * low[0]).shown(low[1])
        ends = (Range(low=end, high=end) * factor for end, (factor, _) in ((self.low, low), (self.high, high)))
        return " to ".join(end.shown(unit) for end, (_, unit) in zip(ends, (low, high), strict=True))


def _hour_unit(hours: float) -> tuple[float, str]:
    """The unit in which a number of hours is read, and how many of it an hour has."""
    if hours >= 1:
        return 1, "h"
    return (60, "min") if hours >= 1 / 60 else (3600, "s")


class Assumptions(Record):
    """What the estimate takes for granted; none of it was measured."""

    ms_per_token: Range = Field(Range(low=5, high=20), description="time per output token of a request, in ms")
    first_token_ms: Range = Field(Range(low=50, high=1000), description="time to a request's first token")
    tokens_per_answer: Range | None = Field(
        None, description="output tokens of a request; null for a quarter of `max_output_tokens` up to all of it"
    )
    deploy_min: Range = Field(Range(low=10, high=30), description="minutes until a variant serves")
    teardown_min: Range = Field(Range(low=2, high=10), description="minutes until its machines are given back")
    task_start_min: Range = Field(Range(low=0.5, high=3), description="minutes until a task of the pipeline works")
    staging_min: Range = Field(Range(low=1, high=10), description="minutes to fetch and stage the prompts")

    def answer(self, workload: Workload) -> Range:
        """Tokens of one answer."""
        longest = float(workload.max_output_tokens)
        if workload.ignore_eos:
            return Range(low=longest, high=longest)
        if self.tokens_per_answer is None:
            return Range(low=longest / 4, high=longest)
        found = self.tokens_per_answer
        return Range(low=min(found.low, longest), high=min(found.high, longest))


ON_THIS_MACHINE = {
    "deploy_min": Range(low=0.3, high=5),
    "teardown_min": Range(low=0.02, high=0.2),
    "task_start_min": Range(low=0.02, high=0.2),
    "staging_min": Range(low=0.02, high=1),
}
"""What differs in `run`: engines and tasks are processes here, and the data set is on this machine or comes to it."""

BUILTIN_ENGINE = {"ms_per_token": Range(low=30, high=110), "first_token_ms": Range(low=150, high=1000)}
"""The built-in engine and its small model on a CPU: two cores took 44 to 106 ms a token, and 250 to 840 to the first one, at
one request at a time to four."""


class Estimate(Record):
    """Of one endpoint, and of the whole run. Money is null where no price is known."""

    sweep_h: Range = Field(description="an endpoint's requests, all levels")
    endpoint_h: Range = Field(description="from deploy to teardown; what is paid for")
    run_h: Range = Field(
        description="the whole job: its variants side by side, those that this machine deploys one after another"
    )
    endpoint_cost: Range | None = Field(description="dollars")
    run_cost: Range | None = Field(description="dollars, of all endpoints that are deployed")
    requests: int = Field(description="an endpoint's requests without warm-up, if no cell ends early")


def estimate(config: Config, assumed: Assumptions, *, in_turn: bool = False) -> Estimate:
    """What a run of this config takes.

    Args:
        in_turn: what is deployed is deployed and measured one after another.

    Raises:
        InputError: a level has fewer requests than rounds.
    """
    deployed = sum(variant.deployed for variant in config.variants)
    tasks = len(config.concurrency) + 2  # the levels, the smoke test, the teardown
    around_min = assumed.task_start_min * tasks
    if deployed:
        around_min += assumed.deploy_min + assumed.teardown_min
    sweep_h = _sweep_h(config, assumed)
    endpoint_h = sweep_h + around_min * (1 / 60)
    run_h = endpoint_h * (max(1, deployed) if in_turn else 1) + (assumed.staging_min + assumed.task_start_min * 3) * (
        1 / 60
    )
    price = config.price_per_hour
    return Estimate(
        sweep_h=sweep_h,
        endpoint_h=endpoint_h,
        run_h=run_h,
        endpoint_cost=endpoint_h * price if price is not None and deployed else None,
        run_cost=endpoint_h * (price * deployed) if price is not None and deployed else None,
        requests=sum(config.workload.requests_at(level) for level in config.concurrency),
    )


def prompts_needed(config: Config) -> int:
    """Prompts that a run uses, none twice: of all levels, rounds and warm-ups."""
    return sum(need.requests for need in needs(config.concurrency, config.repeats, config.workload.requests_at))


def _sweep_h(config: Config, assumed: Assumptions) -> Range:
    answer = assumed.answer(config.workload)
    request_ms = Range(
        low=assumed.first_token_ms.low + answer.low * assumed.ms_per_token.low,
        high=assumed.first_token_ms.high + answer.high * assumed.ms_per_token.high,
    )
    low = high = 0.0
    for need in needs(config.concurrency, config.repeats, config.workload.requests_at):
        share = need.requests / need.concurrency
        early = config.workload.precision is not None and need.round >= FEWEST_ROUNDS
        low += 0.0 if early else share
        high += share
    hour_ms = 3_600_000.0
    return Range(low=low * request_ms.low / hour_ms, high=high * request_ms.high / hour_ms)
