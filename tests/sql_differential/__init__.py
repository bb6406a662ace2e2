"""Random SQL over registered tables, judged by DuckDB's answers on materialised copies."""
