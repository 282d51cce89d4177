"""One command from a target model to a head that vLLM loads: distil, read hidden states, train, evaluate, export.

    python -m eagle3_head.make_head --target MODEL_DIR --work WORK_DIR --out HEAD_DIR

Each stage keeps what it made in WORK_DIR and is skipped or continued at the next start.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import torch

from . import export
from .evaluate import acceptance, table, without
from .head import Eagle3Head
from .states import StateFile, Target, read_conversations
from .train import Recipe, covered, frequent_tokens, initialise, train, with_vocabulary

SCRIPT_VERSION = "1"
LEARNT_VOCABULARY = 4096  # the loss is over these; the draft vocabulary may be wider, as lm_head is the target's own


class Log:
    """Lines with the minutes since the start, on the terminal and in WORK_DIR/train.log."""

    def __init__(self, path: Path) -> None:
        self.path, self.began = path, time.monotonic()

    def __call__(self, text: str) -> None:
        line = f"[{(time.monotonic() - self.began) / 60:5.1f} min] {text}"
        print(line, flush=True)
        with self.path.open("a") as file:
            file.write(line + "\n")


def distil(args: argparse.Namespace) -> None:
    """Run distill.py in a process of its own, so that the engine's memory is given back."""
    command = [sys.executable, "-m", f"{__package__}.distill", "--target", str(args.target), "--out", str(args.work)]
    command += ["--tokens", str(args.tokens), "--seed", str(args.seed)]
    # the engine in this process tree alone, with all threads: see README.md
    subprocess.run(
        command,
        check=True,
        env=os.environ | {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_OMP_THREADS_BIND": "nobind"},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True, help="folder of the target model (Llama family)")
    parser.add_argument("--work", type=Path, required=True, help="folder for data, states, checkpoint and log")
    parser.add_argument("--out", type=Path, required=True, help="folder of the head")
    parser.add_argument("--tokens", type=int, default=400_000, help="answer tokens to distil")
    parser.add_argument("--draft-vocabulary", type=int, default=12_000)
    parser.add_argument(
        "--aux-layers", type=int, nargs=3, default=None, help="default: 2, n/2, n-3 of the target's n layers"
    )
    parser.add_argument("--epochs", type=int, default=Recipe.epochs)
    parser.add_argument(
        "--max-minutes", type=float, default=Recipe.max_minutes, help="the schedule is shortened to end by then"
    )
    parser.add_argument("--draft-steps", type=int, default=Recipe.draft_steps)
    parser.add_argument("--learning-rate", type=float, default=Recipe.learning_rate)
    parser.add_argument("--sharpness", type=float, default=Recipe.sharpness)
    parser.add_argument("--tokens-a-batch", type=int, default=Recipe.tokens_a_batch)
    parser.add_argument(
        "--start-from", type=Path, help="folder of an earlier head: its vocabulary and weights; train on with more data"
    )
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    recipe = Recipe(
        **{name: getattr(args, name) for name in ("epochs", "max_minutes", "draft_steps", "learning_rate")},
        **{name: getattr(args, name) for name in ("sharpness", "tokens_a_batch", "seed")},
    )
    args.work.mkdir(parents=True, exist_ok=True)
    log = Log(args.work / "train.log")
    torch.manual_seed(args.seed)

    distil(args)
    target = Target(args.target)
    layers = target.config.num_hidden_layers
    first, second, third = args.aux_layers or (2, layers // 2, layers - 3)
    head = Eagle3Head(target.head_shape(LEARNT_VOCABULARY, (first, second, third)))

    stored, files = {}, {}
    for name in ("train", "heldout"):
        stored[name] = read_conversations(args.work / f"{name}.jsonl")
        rows = stored[name][-1].row + len(stored[name][-1].ids)
        files[name] = StateFile(args.work / f"{name}.states", head.shape.hidden, rows)
        files[name].fill(target, stored[name], head.shape.aux_layers)
        log(f"{name}: states of {rows} tokens in {len(stored[name])} conversations")
    lessons, validation = without(stored["train"], stored["heldout"], share=0.02, seed=args.seed)
    learnt, kept = (
        frequent_tokens(lessons, count, head.shape.vocabulary) for count in (LEARNT_VOCABULARY, args.draft_vocabulary)
    )
    share = covered(kept, stored["heldout"])
    log(
        f"draft vocabulary of {len(kept)} covers {share:.2%} of the held-out answers' tokens, {covered(learnt, lessons):.2%} are learnt"
    )
    head.use_vocabulary(learnt)
    if args.start_from:
        head = with_vocabulary(export.load(args.start_from), target, learnt)
    else:
        initialise(head, target)
    train(head, target, lessons, files["train"], recipe, args.work / "checkpoint.pt", log)

    export.save(with_vocabulary(head, target, kept), args.out)
    (args.work / "checkpoint.pt").unlink(missing_ok=True)  # the next run has a plan of its own
    head = export.load(args.out)  # what was rounded to bfloat16 is what is judged
    heldout = acceptance(head, target, stored["heldout"], files["heldout"], recipe.draft_steps)
    same_kind = acceptance(head, target, validation, files["train"], recipe.draft_steps)
    log("held-out prompts, predicted\n" + table(heldout))
    log("validation prompts of the training kind, predicted\n" + table(same_kind))
    export.save_provenance(
        args.out,
        {
            "what": f"EAGLE-3 head for {args.target.name}",
            "made_by": f"examples/eagle3_head/make_head.py, version {SCRIPT_VERSION}",
            "data": {
                "how": "self-distilled: the target's greedy answers, most of them to prompts that it wrote itself",
                "sha256": export.sha256(args.work / "train.jsonl"),
                "conversations": len(lessons),
                "heldout_tokens_in_draft_vocabulary": round(share, 4),
                "started_from": args.start_from and export.sha256(args.start_from / "model.safetensors"),
                "answer_tokens": sum(len(c.ids) - c.start for c in lessons),
            },
            "target_sha256": export.sha256(args.target / "model.safetensors"),
            "recipe": {k: v for k, v in asdict(recipe).items() if v != float("inf")},
            "versions": {"python": platform.python_version(), "torch": torch.__version__},
            "predicted_acceptance": {
                "draft_tokens": recipe.draft_steps,
                "heldout": {
                    kind: {"length": round(a.length, 3), "by_position": [round(r, 3) for r in a.by_position]}
                    for kind, a in heldout.items()
                },
            },
        },
    )


if __name__ == "__main__":
    main()
