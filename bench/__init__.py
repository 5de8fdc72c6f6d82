"""Benchmarks: `python -m bench` measures Stoker; `--heat` also measures a real Heat for comparison."""
