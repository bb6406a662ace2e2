-- Functions of EngramSQL, as DuckDB has them over copies, by names that no CTE of a test hides.
CREATE OR REPLACE MACRO engram_fetch(name, ids) AS TABLE SELECT u.ord, NULL::BIGINT AS token, p.head, u.id AS rowid, p.embedding, p.row FROM (SELECT unnest(ids::BIGINT[]) AS id, unnest(range(len(ids))) AS ord) u LEFT JOIN query_table('copy_of_' || name) p ON p.rowid = u.id;
CREATE OR REPLACE MACRO engram_scan(name) AS TABLE FROM query_table('copy_of_' || name);
CREATE OR REPLACE MACRO engram_head(name, id) AS (SELECT head FROM query_table('copy_of_' || name) q WHERE q.rowid = id);
CREATE OR REPLACE MACRO engram_row(name, id) AS (SELECT row FROM query_table('copy_of_' || name) q WHERE q.rowid = id);
CREATE OR REPLACE MACRO engram_vector(name, id) AS (SELECT embedding::FLOAT[] FROM query_table('copy_of_' || name) q WHERE q.rowid = id);
