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

-- engram_ngrams_of(table, rowid, corpus) -> (ngram, uses, share)
--
-- The n-grams of a corpus behind one row id, the most frequent first: uses is how often one occurs, share its part of all
-- uses of the row. More than one line is a collision. corpus: the name of a table, view, CTE or file with a column tokens
-- BIGINT[], a sequence per line.
--
-- Example: SELECT ngram, uses, share FROM engram_ngrams_of('ple', 1264, 'docs')
CREATE OR REPLACE MACRO main.engram_ngrams_of("table", row_id, corpus) AS TABLE
SELECT _g.n.ngram AS ngram, count(*) AS uses, count(*) / sum(count(*)) OVER () AS share
FROM (SELECT unnest(_engram_ngrams("table", _c.tokens, NULL)) AS n FROM query_table(corpus) AS _c) AS _g
WHERE _g.n.rowid = row_id
GROUP BY _g.n.ngram
ORDER BY uses DESC, ngram;
