"""Benchmarks: `python -m bench` measures Stoker, with `--heat` beside a real Heat in the same run."""
