"""Measurements by the rules of docs/performance.md: cold proves itself, A B B A, a limit probe beside each figure."""
