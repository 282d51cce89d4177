"""The fault matrix: cases, the laboratory that runs them, the search for secrets. tests/e2e/test_fault_matrix.py asserts."""
