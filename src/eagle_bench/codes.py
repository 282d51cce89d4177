"""The words by which results and errors name a finding, each with what it means and what to do.

docs/reference/codes.md is made from this module. Codes are stable: scripts may rely on them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from eagle_bench.results import ErrorKind


class Meaning(NamedTuple):
    """What was seen, and what to do next."""

    seen: str
    do: str


WarningCode = Literal[
    "not_deleted",
    "budget",
    "missing_cell",
    "duplicate_cell",
    "unplanned_cell",
    "cell_failed",
    "all_failed",
    "failures",
    "earlier_run",
    "unequal_settings",
    "allowed_difference",
    "shared_host",
    "server_model",
    "prompts_reused",
    "different_prompts",
    "unproven_prompts",
    "token_source",
    "output_length",
    "rounds_differ",
    "too_few_requests",
    "no_details",
    "few_rounds",
    "client_saturated",
    "busy_machine",
    "baseline_differs",
    "impossible_speedup",
    "implausible_slowdown",
    "drift",
    "slower_first_token",
    "lower_throughput",
    "sooner_first_token",
    "higher_throughput",
    "acceptance_near_one",
    "acceptance_unknown",
    "not_lossless",
    "client",
]

_SATURATED = Meaning(
    "the client read its clock late, on average by more than 5 % of the median TTFT or 2 % of the time from the first "
    "token to the last, or it used more than 90 % of its processor: it may have bent the numbers",
    "give it more cores, or measure from another machine",
)

# `warnings[].code` of comparison.json, in the order in which a report shows them.
WARNINGS: dict[WarningCode, Meaning] = {
    "not_deleted": Meaning(
        "an endpoint or a model could not be deleted when its variant was measured: it may still cost money",
        "run the command that is named, or `eagle-bench cleanup`",
    ),
    "budget": Meaning(
        "the run's time (`max_hours`) was used up: cells are missing or were cut short",
        "measure the rest with `--resume` of `submit` or `run`",
    ),
    "missing_cell": Meaning("a cell was planned and did not come in", "look at that step's log"),
    "duplicate_cell": Meaning("a cell came in more than once", "keep the file that belongs to this run"),
    "unplanned_cell": Meaning("a cell is not part of the plan and was left out", "take its file away"),
    "cell_failed": Meaning(
        "a stage before or in the cell broke; the system's own words are there", "follow the advice in the text"
    ),
    "all_failed": Meaning("every request of a cell failed", "see whether the server is up, then read its log"),
    "failures": Meaning(
        "requests failed; failures are often the long ones, so what is left looks fast", "read the server's log"
    ),
    "earlier_run": Meaning(
        "results were taken from an earlier run (`--resume`)",
        "measure both sides anew where a small difference decides",
    ),
    "unequal_settings": Meaning(
        "the variants differ in more than speculation",
        "make them equal, or say that it is meant with `allow_difference`",
    ),
    "allowed_difference": Meaning(
        "the variants differ in more than speculation, and the config's `allow_difference` allows it",
        "read the speed-up as that of both",
    ),
    "shared_host": Meaning(
        "a run measured servers at one host side by side: if that is one machine, they may have slowed each other",
        "measure one after the other with `bench`",
    ),
    "server_model": Meaning(
        "the servers name different models; deployments name freely, so it is only said",
        "make sure that both are the same model",
    ),
    "prompts_reused": Meaning(
        "an endpoint saw a prompt twice: a prefix cache answers the second time", "use more prompts"
    ),
    "different_prompts": Meaning("the variants got different prompts", "give both the same file and seed"),
    "unproven_prompts": Meaning(
        "nothing shows that the variants got the same prompts",
        "measure both with one tool, on prompts of different lengths",
    ),
    "token_source": Meaning("tokens were counted in two ways", "use one for both"),
    "output_length": Meaning(
        "the answers' mean lengths are more than 2 % apart: the variants do not do the same work",
        "check chat template and sampling settings; trust TPOT before E2E",
    ),
    "rounds_differ": Meaning(
        "one variant has rounds that the other lacks: it ended early, or was measured in another number of rounds. "
        "Speed-ups are over the rounds that both have; a cell's own rate and cost are over all of its own",
        "measure both in the same rounds before you compare their rates or costs",
    ),
    "too_few_requests": Meaning("fewer requests completed than give an answer", "measure more prompts"),
    "no_details": Meaning(
        "there are only sums, no single requests, so nothing can be paired", "save results with `--save-detailed`"
    ),
    "few_rounds": Meaning("fewer than 3 rounds: drift is not in the intervals as it should be", "set `repeats: 3`"),
    "client_saturated": _SATURATED,
    "busy_machine": Meaning(
        "in a run on one machine, programs that are no part of it used a quarter of a core or more while a cell was measured",
        "end them and measure again: what slows one variant alone passes for a difference, and no interval shows it",
    ),
    "baseline_differs": Meaning(
        "the baseline's second run (`baseline_again`) is faster or slower than its first: the machines differ, or what "
        "else runs on them does",
        "take a speed-up of that size for nothing; measure on other machines",
    ),
    "implausible_slowdown": Meaning(
        "a token takes more than three times as long as the baseline's: more than drafts cost that are never right",
        "see what else ran on the machine meanwhile, and measure again",
    ),
    "impossible_speedup": Meaning(
        "the speed-up is above 1.05 × the acceptance length, and its whole interval above that length; or above 8×, interval "
        "and all, where neither the responses nor the server's metrics tell the length",
        "look for what else differs: a prefix cache, another batch limit, another machine",
    ),
    "drift": Meaning(
        "the rounds differ by more than their prompts explain (chi-squared, 5 %)",
        "where the level is open, take more rounds; on a machine of yours, let the variants take turns (`run --slots 2`); where "
        "neither would do, or the level is faster or slower all the same, find out what else runs there",
    ),
    "slower_first_token": Meaning("output tokens come faster and the first one later", "weigh what your users feel"),
    "lower_throughput": Meaning("output tokens come faster and throughput is lower", "weigh what you pay for"),
    "sooner_first_token": Meaning("output tokens come slower and the first one sooner", "weigh what your users feel"),
    "higher_throughput": Meaning("output tokens come slower and throughput is higher", "weigh what you pay for"),
    "acceptance_near_one": Meaning(
        "below 1.1 by the responses or the server's metrics: almost no drafted token is accepted",
        "check the draft model's path and version: it is broken or belongs to another target",
    ),
    "acceptance_unknown": Meaning(
        "below 1.1 by chunks, which is a proxy: servers may send accepted tokens one by one",
        "open the engine's metrics page (`serving.invoke_route`)",
    ),
    "not_lossless": Meaning(
        "more answers differ from the baseline's than the baseline's own second run does",
        "report it to those who make the engine",
    ),
    "client": Meaning("the client said something about a cell: see the next table", "see there"),
}

CellWarningCode = Literal[
    "client_saturated",
    "failure_rate",
    "stopped_early",
    "interrupted",
    "budget",
    "one_piece",
    "mixed_counts",
    "usage_refused",
    "hidden_tokens",
    "cached_prompts",
    "prompts_repeated",
    "vllm_disagrees",
    "metrics_names",
    "metrics_values",
    "token_renewed",
]

# `warnings` of cell.json: `CODE: text`.
CELL_WARNINGS: dict[CellWarningCode, Meaning] = {
    "client_saturated": _SATURATED,
    "failure_rate": Meaning(
        "more requests failed than `max_failure_rate` allows: the cell is out of the verdict", "read the server's log"
    ),
    "stopped_early": Meaning(
        "no connection could be made, or more than half of the requests failed and at least 30 s were left: "
        "the cell was ended",
        "see whether the server is up",
    ),
    "interrupted": Meaning(
        "a signal (SIGTERM, SIGINT, or SIGHUP of a closed terminal): what was measured by then is kept, what was in "
        "flight is dropped",
        "measure it again",
    ),
    "budget": Meaning(
        "the run's time (`max_hours`) was used up: what was measured by then is kept, what was in flight is dropped",
        "measure it again, with more time",
    ),
    "one_piece": Meaning(
        "answers came in one piece, or in a few at the pace of a network (16 tokens and more at less than 0.05 ms each): "
        "the time between their tokens was not seen, so they have no TPOT",
        "switch off buffering between server and client",
    ),
    "mixed_counts": Meaning(
        "the server sent its usage with some answers only, and the tokenizer counted the others: two ways of counting, so "
        "the cell is out of the verdict",
        "see why usage is missing: a proxy, or several servers behind one address",
    ),
    "usage_refused": Meaning(
        "the server's usage says a tenth more tokens than the request allowed, or worse: it was not believed, and the "
        "tokenizer counted, or nobody",
        "see what the server counts; give a tokenizer",
    ),
    "hidden_tokens": Meaning(
        "the server counted reasoning tokens that it did not stream: TPOT and throughput are of the tokens that came",
        "compare variants with reasoning streamed, or switched off",
    ),
    "cached_prompts": Meaning(
        "more than half of the prompts' tokens came from the server's prefix cache: it was measured partly on the cache",
        "take prompts that the server has not seen, or restart it; where all users share a long beginning, read TTFT as theirs",
    ),
    "prompts_repeated": Meaning(
        "the result that stood in the file before has the same prompts, and the server does not say what its prefix cache "
        "held of them: it may have answered from it",
        "restart the server, or measure other prompts (`--seed` chooses others of a larger file)",
    ),
    "vllm_disagrees": Meaning(
        "a round's medians as vLLM tells them are not those of its records", "report it: one of the two is wrong"
    ),
    "metrics_names": Meaning(
        "the engine's `/metrics` lacks names that it should have", "trust the acceptance length less"
    ),
    "metrics_values": Meaning(
        "a counter of speculation on the engine's `/metrics` is infinite or absurdly large: no acceptance is taken from there",
        "see what the page says, and what stands between engine and client",
    ),
    "token_renewed": Meaning(
        "the server answered 401 to a token that should have been valid: what carried it failed and was not sent again, "
        "and a new token was taken",
        "see who revokes tokens, and whether the client's clock is right",
    ),
}

# `requests[].error.kind` of cell.json.
REQUEST_ERRORS: dict[ErrorKind, str] = {
    "authentication": "no token, 401, 403",
    "quota": "429",
    "overload": "503, 529",
    "timeout": "408, 504, or no end within `request_timeout_s`",
    "server-error": "other 5xx, an error event in a stream, or an answer that the server broke off (`finish_reason` abort, error "
    "or cancelled)",
    "refused": "other 4xx",
    "connection": "no connection could be made",
    "dropped-stream": "the connection, or an orderly stream, ended before the answer did",
    "malformed-stream": "not HTTP, not server-sent events, an event that is not JSON, far more bytes than the limit of the answer allows",
    "empty": "200 without any content",
    "other": "a process of the client was lost",
}

# `failure.kind` of cell.json, and the kinds of a `ServiceError`.
FAILURES: dict[str, str] = {
    "authentication": "there are no credentials, or they are not valid",
    "permission": "the account may not do this",
    "quota": "a quota is used up, or no machine is free",
    "not-found": "the name or the region is wrong",
    "region": "the region has no such machine",
    "image": "the serving image can't be pulled",
    "eula": "the model's licence is not accepted",
    "gated-model": "the model's conditions are not accepted by the token's account",
    "timeout": "it took longer than it may",
    "cancelled": "somebody cancelled it",
    "interrupted": "a signal ended it",
    "budget": "the run's time (`max_hours`) was used up",
    "unavailable": "the service could not be reached, or is overloaded; this often passes",
    "input": "the config asks for something that can't be",
    "unexpected": "a fault of eagle-bench: the step's log has the traceback",
    "other": "anything else; the service's own words are in the message",
}
