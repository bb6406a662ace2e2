"""Pictures of tables and measurements: as text in a terminal, or as files drawn by matplotlib.

Each picture is a question to the database (``values``, ``norms``, ``residency``, ``plan``) or to a file (``latency``),
an answer as data (``figure``), and two ways to draw it (``text``, ``image``).
"""
