-- N-grams: what stands behind row ids.

-- engram_ngrams(table, tokens [, history]) -> (token, head, rowid, ngram)
--
-- What every head hashes at every token, one line per row id that rowids_for_seq gives. token is the token's place in the
-- list, from 0; ngram holds the ids that are hashed for that head, oldest first, as the hash sees them: compressed ids
-- where the model compresses tokens, the id of EOS or pad where a token is missing or hidden behind a boundary (longcat
-- leaves such tokens out). Equal n-grams of a head have equal row ids. history: tokens before, newest last. tokens and
-- history are lists or columns of a relation before this one.
--
-- Example: SELECT token, head, rowid, ngram FROM engram_ngrams('ple', [17, 4, 256]) WHERE head IN (0, 8)
CREATE OR REPLACE MACRO main.engram_ngrams("table", tokens, history := NULL) AS TABLE
SELECT _g.n.token AS token, _g.n.head AS head, _g.n.rowid AS rowid, _g.n.ngram AS ngram
FROM (SELECT unnest(_engram_ngrams("table", tokens, history)) AS n) AS _g;

-- engram_row_ngrams(table, corpus, rowid) -> (ngram, lookups, share)
--
-- The n-grams of a corpus behind one row id, the most frequent first: lookups is how often one occurs, share its part of
-- all lookups of the row. More than one line is a collision; none: the corpus does not ask for the row. corpus: the name of
-- a table, view, CTE or file with a column tokens BIGINT[], a sequence per line.
--
-- Example: SELECT ngram, lookups, share FROM engram_row_ngrams('ple', 'docs', 1264)
CREATE OR REPLACE MACRO main.engram_row_ngrams("table", corpus, rowid) AS TABLE
WITH _engram_wanted AS MATERIALIZED (
    SELECT _engram_row_id("table", rowid) AS wanted
)
SELECT _g.n.ngram AS ngram, count(*) AS lookups, count(*) / sum(count(*)) OVER () AS share
FROM (SELECT _p.wanted AS wanted, unnest(_engram_ngrams("table", _p.p.tokens, _p.p.history)) AS n
    FROM (SELECT _w.wanted AS wanted, unnest(_engram_pieces("table", _c.tokens, NULL)) AS p
        FROM query_table(corpus) AS _c, _engram_wanted AS _w) AS _p
    -- Most pieces do not ask for the row, and their n-grams cost more than their row ids.
    WHERE list_contains(flatten(rowids_for_seq("table", _p.p.tokens, _p.p.history)), _p.wanted)) AS _g
WHERE _g.n."rowid" = _g.wanted
GROUP BY _g.n.ngram
ORDER BY lookups DESC, ngram;
