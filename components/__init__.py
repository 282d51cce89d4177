"""The Kubeflow components: each a signature, a docstring and one call into the library."""
