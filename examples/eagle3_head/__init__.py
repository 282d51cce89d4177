"""Train an EAGLE-3 draft head for a Llama-family target by self-distillation; see README.md."""
