-- Corpora: what sequences of tokens ask of a table.
--
-- A corpus is named: a table, a view, a CTE of the same query, a variable that the client offers as a relation, or a file
-- that DuckDB reads, with a column tokens BIGINT[] and one sequence per line. A lookup is one row id of one token.

-- engram_head_load(table, corpus) -> (head, ngram_order, size, lookups, ngrams, rows_used, used_share, expected_share, collisions, collided_lookups, most_ngrams)
--
-- How a corpus loads each head of a table. lookups: row ids asked for; ngrams: distinct n-grams among them; rows_used:
-- distinct row ids; used_share: rows_used / size, and expected_share what as many n-grams use on average if they are
-- spread at random; collisions: row ids with more than one distinct n-gram; collided_lookups: lookups of those row ids;
-- most_ngrams: the most distinct n-grams of one row id. corpus: the name of a table, view, CTE or file with a column tokens
-- BIGINT[], one sequence per line.
--
-- Example: SELECT head, size, lookups, ngrams, rows_used, collisions FROM engram_head_load('ple', 'docs') LIMIT 3
CREATE OR REPLACE MACRO main.engram_head_load("table", corpus) AS TABLE
WITH _engram_grams AS (
    SELECT _g.n.head AS head, _g.n.rowid AS id, _g.n.ngram AS ngram, count(*) AS uses
    FROM (SELECT unnest(_engram_ngrams("table", _c.tokens, NULL)) AS n FROM query_table(corpus) AS _c) AS _g
    GROUP BY ALL
), _engram_rows AS (
    SELECT head, id, count(*) AS ngrams, sum(uses) AS uses FROM _engram_grams GROUP BY ALL
), _engram_loads AS (
    SELECT head, sum(uses) AS lookups, sum(ngrams) AS ngrams, count(*) AS rows_used,
        count(*) FILTER (ngrams > 1) AS collisions, sum(uses) FILTER (ngrams > 1) AS collided,
        max(ngrams) AS most_ngrams
    FROM _engram_rows GROUP BY head
)
SELECT _h.head AS head, _h.ngram_order AS ngram_order, _h.size AS size,
    coalesce(_l.lookups, 0)::BIGINT AS lookups, coalesce(_l.ngrams, 0)::BIGINT AS ngrams,
    coalesce(_l.rows_used, 0) AS rows_used, coalesce(_l.rows_used, 0) / _h.size AS used_share,
    1 - pow(1 - 1 / _h.size, coalesce(_l.ngrams, 0)) AS expected_share,
    coalesce(_l.collisions, 0) AS collisions, coalesce(_l.collided, 0)::BIGINT AS collided_lookups,
    coalesce(_l.most_ngrams, 0) AS most_ngrams
FROM engram_heads("table") AS _h LEFT JOIN _engram_loads AS _l ON _l.head = _h.head
ORDER BY _h.head;

-- engram_collisions(table, corpus) -> (rowid, head, ngrams, uses, main_share)
--
-- The row ids that more than one distinct n-gram of a corpus is hashed to, in no order. ngrams: how many; uses: lookups of
-- the row id; main_share: the share of the most frequent n-gram in them. engram_ngrams_of shows the n-grams of one.
-- corpus: the name of a table, view, CTE or file with a column tokens BIGINT[], one sequence per line.
--
-- Example: SELECT * FROM engram_collisions('ple', 'docs') ORDER BY rowid LIMIT 3
CREATE OR REPLACE MACRO main.engram_collisions("table", corpus) AS TABLE
WITH _engram_grams AS (
    SELECT _g.n.head AS head, _g.n.rowid AS id, _g.n.ngram AS ngram, count(*) AS uses
    FROM (SELECT unnest(_engram_ngrams("table", _c.tokens, NULL)) AS n FROM query_table(corpus) AS _c) AS _g
    GROUP BY ALL
)
SELECT id AS rowid, head, count(*) AS ngrams, sum(uses)::BIGINT AS uses, max(uses) / sum(uses) AS main_share
FROM _engram_grams GROUP BY id, head HAVING count(*) > 1;

-- engram_coverage(table, corpus) -> (tokens, lookups, unique_rows, rows, coverage)
--
-- How much of a table a corpus uses. lookups: row ids asked for, tokens x heads; unique_rows: distinct ones; rows: rows
-- that the heads of the table reach; coverage: unique_rows / rows. corpus: the name of a table, view, CTE or file with a
-- column tokens BIGINT[], one sequence per line.
--
-- Example: SELECT * FROM engram_coverage('ple', 'docs')
CREATE OR REPLACE MACRO main.engram_coverage("table", corpus) AS TABLE
WITH _engram_lookups AS (
    SELECT unnest(rowids_for_seq("table", _c.tokens), recursive := true) AS id FROM query_table(corpus) AS _c
), _engram_used AS (
    SELECT count(*) AS lookups, count(DISTINCT id) AS unique_rows FROM _engram_lookups
), _engram_reach AS (
    SELECT sum(_h.rows) AS reach, count(*) AS heads FROM engram_heads("table") AS _h
)
SELECT _u.lookups // _r.heads AS tokens, _u.lookups AS lookups, _u.unique_rows AS unique_rows, _r.reach::BIGINT AS rows,
    _u.unique_rows / _r.reach AS coverage
FROM _engram_used AS _u, _engram_reach AS _r;

-- engram_reuse(table, corpus, batch) -> (batches, lookups, unique_rows, batch_rows, batch_rows_max, batch_reuse, top_100, top_1000, top_10000, top_1_percent)
--
-- How often a corpus comes back to rows, within a batch and at all. A batch is batch consecutive tokens of one sequence, the
-- last of a sequence what is left. lookups: row ids asked for; unique_rows: distinct ones; batch_rows and batch_rows_max:
-- distinct row ids of a batch, on average and at most; batch_reuse: lookups per distinct row id of a batch, which is what
-- reading each row once for a batch saves; top_100, ...: the share of all lookups that the 100 most used rows take, and
-- the most used hundredth of unique_rows. corpus: the name of a table, view, CTE or file with a column tokens BIGINT[],
-- one sequence per line.
--
-- Example: SELECT batches, lookups, unique_rows, batch_rows, batch_reuse FROM engram_reuse('ple', 'docs', 2)
CREATE OR REPLACE MACRO main.engram_reuse("table", corpus, batch) AS TABLE
WITH _engram_sequences AS (
    SELECT row_number() OVER () AS sequence, _c.tokens AS tokens FROM query_table(corpus) AS _c
), _engram_tokens AS (
    SELECT sequence, unnest(range(len(tokens))) AS token, unnest(rowids_for_seq("table", tokens)) AS ids
    FROM _engram_sequences
), _engram_lookups AS (
    SELECT sequence, unnest(ids) AS id,
        token // CASE WHEN batch >= 1 THEN batch::BIGINT ELSE error('engram_reuse: a batch has at least one token') END
            AS part
    FROM _engram_tokens
), _engram_batches AS (
    SELECT count(*) AS lookups, count(DISTINCT id) AS unique_rows FROM _engram_lookups GROUP BY sequence, part
), _engram_rows AS (
    SELECT uses, row_number() OVER (ORDER BY uses DESC) AS place, count(*) OVER () AS unique_rows
    FROM (SELECT count(*) AS uses FROM _engram_lookups GROUP BY id)
), _engram_tops AS (
    SELECT count(*) AS unique_rows, sum(uses) FILTER (place <= 100) / sum(uses) AS top_100,
        sum(uses) FILTER (place <= 1000) / sum(uses) AS top_1000,
        sum(uses) FILTER (place <= 10000) / sum(uses) AS top_10000,
        sum(uses) FILTER (place <= ceil(unique_rows / 100)) / sum(uses) AS top_1_percent
    FROM _engram_rows
), _engram_whole AS (
    SELECT count(*) AS batches, coalesce(sum(lookups), 0)::BIGINT AS lookups, avg(unique_rows) AS batch_rows,
        max(unique_rows) AS batch_rows_max, sum(lookups) / sum(unique_rows) AS batch_reuse
    FROM _engram_batches
)
SELECT _w.batches AS batches, _w.lookups AS lookups, _t.unique_rows AS unique_rows, _w.batch_rows AS batch_rows,
    _w.batch_rows_max AS batch_rows_max, _w.batch_reuse AS batch_reuse, _t.top_100 AS top_100,
    _t.top_1000 AS top_1000, _t.top_10000 AS top_10000, _t.top_1_percent AS top_1_percent
FROM _engram_whole AS _w, _engram_tops AS _t;

-- engram_hot_rows(table, corpus) -> (place, rowid, head, uses, share, cumulative_share)
--
-- The rows that a corpus uses, the most used first; rows used as often by their id. place counts from 1; uses: lookups of
-- the row; share: its part of all lookups; cumulative_share: the part of it and all before it, which is what a cache of
-- the first place rows serves. corpus: the name of a table, view, CTE or file with a column tokens BIGINT[], one sequence
-- per line.
--
-- Example: SELECT * FROM engram_hot_rows('ple', 'docs') LIMIT 3
CREATE OR REPLACE MACRO main.engram_hot_rows("table", corpus) AS TABLE
WITH _engram_lookups AS (
    SELECT unnest(rowids_for_seq("table", _c.tokens), recursive := true) AS id FROM query_table(corpus) AS _c
), _engram_rows AS (
    SELECT id, count(*) AS uses FROM _engram_lookups GROUP BY id
)
SELECT row_number() OVER _order AS place, id AS rowid, engram_head("table", id) AS head, uses,
    uses / sum(uses) OVER () AS share, sum(uses) OVER _order / sum(uses) OVER () AS cumulative_share
FROM _engram_rows
WINDOW _order AS (ORDER BY uses DESC, id ROWS UNBOUNDED PRECEDING)
ORDER BY place;
