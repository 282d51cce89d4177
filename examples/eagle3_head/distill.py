"""Self-distilled training text: the target's own answers to prompts that it mostly wrote itself.

Three rounds, each greedy and ended by the end-of-turn token or a limit:

1. the target continues an empty or just opened *user* turn (sampled at temperature 1): its own idea of what people
   ask, with far more variety than templates have (the trick of Magpie, arXiv 2406.08464); templates over subjects are mixed in;
2. it answers them;
3. passages out of those answers become raw material for summaries, rewritings and questions, which it answers too.

The result is JSON lines, one conversation each: {"prompt": text, "ids": [token ids], "start": index of the first answer token}.
A second start continues where the first one stopped.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .heldout import HELDOUT
from .subjects import OPENERS, PASSAGE_TASKS, SUBJECTS, TASKS

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
END_OF_TURN = "<|im_end|>"
BATCH_OF_PROMPTS = 160


def template_prompts(rng: random.Random, count: int) -> list[str]:
    """`count` requests made of a task and one or two subjects."""
    return [rng.choice(TASKS).format(s=(pair := rng.sample(SUBJECTS, 2))[0], t=pair[1]) for _ in range(count)]


def passage_prompts(rng: random.Random, answers: list[str], count: int) -> list[str]:
    """`count` requests about passages of 2 to 6 sentences from `answers`."""
    made = []
    for _ in range(count):
        sentences = rng.choice(answers).split(". ")
        length = rng.randint(2, 6)
        start = rng.randrange(max(1, len(sentences) - length))
        passage = ". ".join(sentences[start : start + length]).strip()
        made.append(rng.choice(PASSAGE_TASKS).format(p=passage))
    return made


def user_openings(rng: random.Random, count: int) -> list[str]:
    """Openings of a user turn: empty, a first word or two, or a subject."""
    kinds = rng.choices(("empty", "opener", "subject"), weights=(4, 4, 2), k=count)
    return [
        "" if kind == "empty" else rng.choice(OPENERS) + (f" {rng.choice(SUBJECTS)}" if kind == "subject" else "")
        for kind in kinds
    ]


def read_conversations(path: Path) -> list[dict[str, Any]]:
    """The conversations written so far; none if there is no file yet."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Target:
    """The target model in vLLM's offline engine."""

    def __init__(self, model: Path, max_output_tokens: int, sequences: int, dtype: str) -> None:
        from vllm import LLM, SamplingParams

        self.llm = LLM(
            str(model),
            dtype=dtype,
            max_model_len=1024,
            max_num_seqs=sequences,
            enforce_eager=True,
            seed=0,
            distributed_executor_backend="uni",
        )
        self.tokenizer = self.llm.get_tokenizer()
        self.greedy = SamplingParams(temperature=0.0, max_tokens=max_output_tokens)
        self.sampled = SamplingParams(temperature=0.9, max_tokens=80)  # top-p would sort the vocabulary: slow on a CPU

    def ask_itself(self, openings: list[str]) -> list[str]:
        """User turns in the target's own words, each starting with its opening; unusable ones are left out."""
        head = f"<|im_start|>system\n{SYSTEM}{END_OF_TURN}\n<|im_start|>user\n"
        outputs = self.llm.generate([head + text for text in openings], self.sampled, use_tqdm=False)
        turns = [opening + out.outputs[0].text for opening, out in zip(openings, outputs, strict=True)]
        return [turn.strip() for turn in turns if len(turn.strip()) >= 12 and "<|" not in turn]

    def answer(self, prompts: list[str]) -> Iterable[dict[str, Any]]:
        """Greedy answers as conversations (see the module's docstring)."""
        asked = [
            self.tokenizer.apply_chat_template(
                [{"role": "user", "content": p}], add_generation_prompt=True, tokenize=False
            )
            for p in prompts
        ]
        for prompt, out in zip(prompts, self.llm.generate(asked, self.greedy, use_tqdm=False), strict=True):
            head = list(out.prompt_token_ids)
            yield {"prompt": prompt, "ids": head + list(out.outputs[0].token_ids), "start": len(head)}


def distill(target: Target, path: Path, tokens_wanted: int, seed: int) -> None:
    """Add conversations to `path` until it holds `tokens_wanted` answer tokens."""
    have = read_conversations(path)
    asked = {c["prompt"] for c in have}
    tokens = sum(len(c["ids"]) - c["start"] for c in have)
    answers = [target.tokenizer.decode(c["ids"][c["start"] :], skip_special_tokens=True) for c in have]
    rng = random.Random(seed + len(have))  # noqa: S311  # a seed is wanted, not a secret
    with path.open("a") as file:
        while tokens < tokens_wanted:
            own = target.ask_itself(user_openings(rng, BATCH_OF_PROMPTS * 6 // 10))
            prompts = own + template_prompts(rng, BATCH_OF_PROMPTS * 2 // 10)
            if answers:
                prompts += passage_prompts(rng, answers, BATCH_OF_PROMPTS * 2 // 10)
            prompts = [p for p in dict.fromkeys(prompts) if p not in asked and len(target.tokenizer(p).input_ids) < 320]
            for conversation in target.answer(prompts):
                file.write(json.dumps(conversation) + "\n")
                answer = conversation["ids"][conversation["start"] :]
                tokens += len(answer)
                if len(answer) > 60:
                    answers.append(target.tokenizer.decode(answer, skip_special_tokens=True))
            asked.update(prompts)
            file.flush()
            print(f"{len(asked)} conversations, {tokens} answer tokens", flush=True)


def answer_heldout(target: Target, path: Path) -> None:
    """The target's answers to the held-out prompts, with their kind, into `path`; nothing if it is there."""
    if path.exists():
        return
    kinds = [kind for kind, prompts in HELDOUT.items() for _ in prompts]
    answered = target.answer([prompt for prompts in HELDOUT.values() for prompt in prompts])
    lines = [json.dumps(c | {"kind": kind}) + "\n" for kind, c in zip(kinds, answered, strict=True)]
    path.write_text("".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True, help="folder of the target model")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder: train.jsonl (continued if it exists), heldout.jsonl"
    )
    parser.add_argument("--tokens", type=int, default=600_000, help="answer tokens wanted")
    parser.add_argument("--max-output-tokens", type=int, default=128)
    parser.add_argument("--sequences", type=int, default=256, help="sequences in one engine step")
    parser.add_argument("--dtype", default="float32", help="float32 is the fastest on many CPUs; bfloat16 on a GPU")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    enough = args.tokens <= sum(len(c["ids"]) - c["start"] for c in read_conversations(args.out / "train.jsonl"))
    if enough and (args.out / "heldout.jsonl").exists():
        return
    target = Target(args.target, args.max_output_tokens, args.sequences, args.dtype)
    answer_heldout(target, args.out / "heldout.jsonl")
    distill(target, args.out / "train.jsonl", args.tokens, args.seed)


if __name__ == "__main__":
    main()
