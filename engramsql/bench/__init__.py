"""Measurements behind ``engramsql bench``, by the rules of docs/performance.md.

Cold reads prove themselves or the run is VOID, A and B are compared as A B B A with fresh random ids, and a limit of
this machine is measured beside every figure. Nothing here is imported by the rest of the package but ``options``.
"""
