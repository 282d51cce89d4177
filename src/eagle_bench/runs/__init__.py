"""A run on this machine, what runs left, and how to go on with one."""
