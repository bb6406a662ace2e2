"""Measurements by the rules of docs/performance.md: self-checked cold reads, A B B A, a limit probe beside every figure."""
