"""The built-in example: a small real model, its prompts, and an engine for the CPU."""
