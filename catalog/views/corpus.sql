-- Corpora: what sequences of tokens ask of a table.
--
-- A corpus is named: a table, a view, a CTE of the same query, a variable that the client offers as a relation, or a file
-- that DuckDB reads, with a column tokens BIGINT[] and one sequence per line. A lookup is one row id of one token.

-- engram_head_load(table, corpus) -> (head, ngram_order, size, lookups, ngrams, rows_used, used_share, expected_share, collisions, collided_lookups, most_ngrams)
--
-- How a corpus loads each head of a table. lookups: row ids asked for; ngrams: distinct n-grams among them; rows_used:
-- distinct row ids; used_share: rows_used / size, and expected_share what as many n-grams use on average if they are
-- spread at random; collisions: row ids with more than one distinct n-gram; collided_lookups: lookups of those row ids;
-- most_ngrams: the most distinct n-grams of one row id. n-grams are told apart by their ids, or, where the ids of one do not
-- fit 127 bits, by XXH3-128 of them, which takes two for one with a chance of 2^-128. corpus: the name of a table, view, CTE
-- or file with a column tokens BIGINT[], one sequence per line.
--
-- Example: SELECT head, size, lookups, ngrams, rows_used, collisions FROM engram_head_load('ple', 'docs') LIMIT 3
CREATE OR REPLACE MACRO main.engram_head_load("table", corpus) AS TABLE
WITH _engram_grams AS (
    SELECT _g.g.head AS head, _g.g.key AS key, any_value(_g.g.rowids) AS ids, count(*) AS lookups
    FROM (SELECT unnest(_engram_grams("table", _p.p.tokens, _p.p.history)) AS g
        FROM (SELECT unnest(_engram_pieces("table", _c.tokens, NULL)) AS p FROM query_table(corpus) AS _c) AS _p) AS _g
    GROUP BY ALL
), _engram_rows AS (
    SELECT id, count(*) AS ngrams, sum(lookups) AS lookups FROM (SELECT unnest(ids) AS id, lookups FROM _engram_grams)
    GROUP BY id
), _engram_loads AS (
    SELECT engram_head("table", id) AS head, sum(lookups) AS lookups, sum(ngrams) AS ngrams, count(*) AS rows_used,
        count(*) FILTER (ngrams > 1) AS collisions, sum(lookups) FILTER (ngrams > 1) AS collided,
        max(ngrams) AS most_ngrams
    FROM _engram_rows GROUP BY ALL
)
SELECT _h.head AS head, _h.ngram_order AS ngram_order, _h.size AS size,
    coalesce(_l.lookups, 0)::BIGINT AS lookups, coalesce(_l.ngrams, 0)::BIGINT AS ngrams,
    coalesce(_l.rows_used, 0) AS rows_used, coalesce(_l.rows_used, 0) / _h.size AS used_share,
    1 - pow(1 - 1 / _h.size, coalesce(_l.ngrams, 0)) AS expected_share,
    coalesce(_l.collisions, 0) AS collisions, coalesce(_l.collided, 0)::BIGINT AS collided_lookups,
    coalesce(_l.most_ngrams, 0) AS most_ngrams
FROM engram_heads("table") AS _h LEFT JOIN _engram_loads AS _l ON _l.head = _h.head
ORDER BY _h.head;

-- engram_collisions(table, corpus) -> (rowid, head, ngrams, lookups, main_share)
--
-- The row ids that more than one distinct n-gram of a corpus is hashed to, in no order. ngrams: how many; lookups: of
-- the row id; main_share: the share of the most frequent n-gram in them. engram_row_ngrams shows the n-grams of one. n-grams
-- are told apart as in engram_head_load.
-- corpus: the name of a table, view, CTE or file with a column tokens BIGINT[], one sequence per line.
--
-- Example: SELECT * FROM engram_collisions('ple', 'docs') ORDER BY rowid LIMIT 3
CREATE OR REPLACE MACRO main.engram_collisions("table", corpus) AS TABLE
WITH _engram_grams AS (
    SELECT _g.g.head AS head, _g.g.key AS key, any_value(_g.g.rowids) AS ids, count(*) AS lookups
    FROM (SELECT unnest(_engram_grams("table", _p.p.tokens, _p.p.history)) AS g
        FROM (SELECT unnest(_engram_pieces("table", _c.tokens, NULL)) AS p FROM query_table(corpus) AS _c) AS _p) AS _g
    GROUP BY ALL
), _engram_rows AS (
    SELECT id, count(*) AS ngrams, sum(lookups) AS lookups, max(lookups) AS most
    FROM (SELECT unnest(ids) AS id, lookups FROM _engram_grams) GROUP BY id HAVING count(*) > 1
)
SELECT id AS rowid, engram_head("table", id) AS head, ngrams, lookups::BIGINT AS lookups, most / lookups AS main_share
FROM _engram_rows;

-- engram_coverage(table, corpus) -> (tokens, lookups, rows_used, reachable_rows, coverage)
--
-- How much of a table a corpus uses. lookups: row ids asked for, tokens x heads; rows_used: distinct ones;
-- reachable_rows: rows that the heads of the table reach; coverage: rows_used / reachable_rows. corpus: the name of a
-- table, view, CTE or file with a column tokens BIGINT[], one sequence per line.
--
-- Example: SELECT * FROM engram_coverage('ple', 'docs')
CREATE OR REPLACE MACRO main.engram_coverage("table", corpus) AS TABLE
WITH _engram_lookups AS (
    SELECT unnest(rowids_for_seq("table", _p.p.tokens, _p.p.history), recursive := true) AS id
    FROM (SELECT unnest(_engram_pieces("table", _c.tokens, NULL)) AS p FROM query_table(corpus) AS _c) AS _p
), _engram_used AS (
    SELECT count(*) AS lookups, count(DISTINCT id) AS rows_used FROM _engram_lookups
), _engram_reach AS (
    SELECT sum(_h.rows) AS reach, count(*) AS heads FROM engram_heads("table") AS _h
)
SELECT _u.lookups // _r.heads AS tokens, _u.lookups AS lookups, _u.rows_used AS rows_used,
    _r.reach::BIGINT AS reachable_rows, _u.rows_used / _r.reach AS coverage
FROM _engram_used AS _u, _engram_reach AS _r;

-- engram_reuse(table, corpus, batch) -> (batches, lookups, rows_used, batch_rows_mean, batch_rows_max, batch_reuse, top_100_share, top_1000_share, top_10000_share, top_1_percent_share)
--
-- How often a corpus comes back to rows, within a batch and at all. A batch is batch consecutive tokens of one sequence, the
-- last of a sequence what is left. lookups: row ids asked for; rows_used: distinct ones; batch_rows_mean and batch_rows_max:
-- distinct row ids of a batch, on average and at most; batch_reuse: lookups per distinct row id of a batch, which is what
-- reading each row once for a batch saves; top_100_share, ...: the share of all lookups that the 100 most used rows take,
-- and the most used hundredth of rows_used. corpus: the name of a table, view, CTE or file with a column tokens BIGINT[],
-- one sequence per line.
--
-- Example: SELECT batches, lookups, rows_used, batch_rows_mean, batch_reuse FROM engram_reuse('ple', 'docs', 2)
CREATE OR REPLACE MACRO main.engram_reuse("table", corpus, batch) AS TABLE
WITH _engram_size AS MATERIALIZED (
    SELECT _engram_batch(batch) AS size
), _engram_sequences AS (
    SELECT row_number() OVER () AS sequence, _c.tokens AS tokens FROM query_table(corpus) AS _c WHERE len(_c.tokens) > 0
), _engram_parts AS (
    SELECT sequence, unnest(_engram_pieces("table", tokens, NULL)) AS p FROM _engram_sequences
), _engram_tokens AS (
    SELECT sequence, unnest(range(p.first, p.first + len(p.tokens))) AS token,
        unnest(rowids_for_seq("table", p.tokens, p.history)) AS ids
    FROM _engram_parts
), _engram_lookups AS (
    SELECT _t.sequence AS sequence, unnest(_t.ids) AS id, _t.token // _s.size AS part
    FROM _engram_tokens AS _t, _engram_size AS _s
), _engram_batches AS (
    SELECT count(*) AS lookups, count(DISTINCT id) AS rows_used FROM _engram_lookups GROUP BY sequence, part
), _engram_rows AS (
    SELECT lookups, row_number() OVER (ORDER BY lookups DESC) AS place, count(*) OVER () AS rows_used
    FROM (SELECT count(*) AS lookups FROM _engram_lookups GROUP BY id)
), _engram_tops AS (
    SELECT count(*) AS rows_used, sum(lookups) FILTER (place <= 100) / sum(lookups) AS top_100,
        sum(lookups) FILTER (place <= 1000) / sum(lookups) AS top_1000,
        sum(lookups) FILTER (place <= 10000) / sum(lookups) AS top_10000,
        sum(lookups) FILTER (place <= ceil(rows_used / 100)) / sum(lookups) AS top_1_percent
    FROM _engram_rows
), _engram_whole AS (
    SELECT count(*) AS batches, coalesce(sum(lookups), 0)::BIGINT AS lookups, avg(rows_used) AS batch_rows_mean,
        max(rows_used) AS batch_rows_max, sum(lookups) / sum(rows_used) AS batch_reuse
    FROM _engram_batches
)
SELECT _w.batches AS batches, _w.lookups AS lookups, _t.rows_used AS rows_used, _w.batch_rows_mean AS batch_rows_mean,
    _w.batch_rows_max AS batch_rows_max, _w.batch_reuse AS batch_reuse, _t.top_100 AS top_100_share,
    _t.top_1000 AS top_1000_share, _t.top_10000 AS top_10000_share, _t.top_1_percent AS top_1_percent_share
FROM _engram_whole AS _w, _engram_tops AS _t;

-- engram_hot_rows(table, corpus) -> (place, rowid, head, lookups, share, cumulative_share)
--
-- The rows that a corpus uses, the most used first; rows used as often by their id. place counts from 1; lookups: of
-- the row; share: its part of all lookups; cumulative_share: the part of it and all before it, which is what a cache of
-- the first place rows serves. corpus: the name of a table, view, CTE or file with a column tokens BIGINT[], one sequence
-- per line.
--
-- Example: SELECT * FROM engram_hot_rows('ple', 'docs') LIMIT 3
CREATE OR REPLACE MACRO main.engram_hot_rows("table", corpus) AS TABLE
WITH _engram_lookups AS (
    SELECT unnest(rowids_for_seq("table", _p.p.tokens, _p.p.history), recursive := true) AS id
    FROM (SELECT unnest(_engram_pieces("table", _c.tokens, NULL)) AS p FROM query_table(corpus) AS _c) AS _p
), _engram_rows AS (
    SELECT id, count(*) AS lookups FROM _engram_lookups GROUP BY id
)
SELECT row_number() OVER _order AS place, id AS rowid, engram_head("table", id) AS head, lookups,
    lookups / sum(lookups) OVER () AS share, sum(lookups) OVER _order / sum(lookups) OVER () AS cumulative_share
FROM _engram_rows
WINDOW _order AS (ORDER BY lookups DESC, id ROWS UNBOUNDED PRECEDING)
ORDER BY place;
