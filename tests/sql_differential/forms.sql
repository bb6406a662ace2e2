-- Statements that the grammar does not make, one a line. `{t}` is a registered table, `{n}` a row id, `{l}` a list of row
-- ids, `{k}` a query of keys. Where a line has several, parted by ` ;; `, the last one says what came of the others: all
-- that they make is called scratch, or hides a table of the tests, and goes afterwards.

SELECT rowid, embedding FROM {t} WHERE rowid = {n}
SELECT * FROM {t} WHERE rowid IN ({l})
SELECT * FROM {t} WHERE rowid NOT IN ({l}) AND rowid < 9 ORDER BY rowid
FROM {t} WHERE rowid BETWEEN {n} AND {n} + 5
FROM {t} SELECT rowid + 1, len(embedding) WHERE rowid IN ({k})
SELECT count(*) FROM {t} WHERE rowid NOT IN ({k})
SELECT count(*), count(embedding) FROM {t} WHERE rowid IN ({k}) OR rowid = {n}
SELECT rowid FROM {t} WHERE rowid IN (SELECT id FROM keys) AND rowid NOT IN (SELECT id FROM keys16 WHERE id IS NOT NULL)
TABLE {t} ORDER BY rowid LIMIT 3
DESCRIBE {t}
DESCRIBE SELECT embedding[1], row FROM {t} WHERE rowid = {n}
SUMMARIZE SELECT rowid, head FROM {t} WHERE rowid IN ({l})
SHOW COLUMNS FROM {t}
VALUES ((SELECT max(rowid) FROM {t} WHERE rowid < {n}), 2)
SELECT (SELECT head FROM {t} WHERE rowid = {n}) AS h
SELECT [(SELECT hex(row) FROM {t} WHERE rowid = x) FOR x IN [1, 2]]
SELECT ARRAY(SELECT rowid FROM {t} WHERE rowid IN ({l}) ORDER BY 1)
SELECT EXISTS (FROM {t} WHERE rowid = {n})
SELECT k.id, (SELECT row FROM {t} WHERE rowid = k.id) AS r FROM keys k
SELECT id, (SELECT head FROM {t} p WHERE p.rowid = id) FROM keysd
SELECT k.id FROM keys k WHERE EXISTS (SELECT 1 FROM {t} p WHERE p.rowid = k.id)
SELECT k.id FROM keys k WHERE k.id NOT IN (SELECT rowid FROM {t})
SELECT k.id FROM keyst k WHERE k.id::BIGINT IN (SELECT rowid FROM {t})
SELECT k.*, p.head FROM keys k LEFT JOIN {t} p ON p.rowid = k.id AND p.head > 1 ORDER BY ALL
SELECT k.*, p.head FROM {t} p RIGHT JOIN keys k ON p.rowid = k.id WHERE p.head IS NULL
SELECT * FROM keys k ANTI JOIN {t} p ON k.id = p.rowid
SELECT p.rowid, k.w FROM {t} p FULL JOIN keysu k ON k.id = p.rowid WHERE p.rowid < 20 OR p.rowid IS NULL
SELECT * FROM keys32 k, {t} p WHERE k.id = p.rowid AND p.head = 0
SELECT p.* FROM {t} p SEMI JOIN keys k ON k.id = p.rowid
SELECT * EXCLUDE (embedding, row) FROM keysh k JOIN {t} p ON k.id = p.rowid
SELECT count(*) FROM keyst k JOIN {t} p ON k.id = p.rowid
SELECT count(*) FROM keysn k JOIN {t} p ON k.id = p.rowid
SELECT count(*) FROM keysb k JOIN {t} p ON k.id = p.rowid
SELECT * FROM ridkeys JOIN {t} USING (rowid)
SELECT * FROM ridkeys LEFT JOIN {t} USING (rowid, head)
SELECT rowid, note FROM ridkeys NATURAL JOIN {t}
SELECT rowid, count(*) FROM ridkeys FULL JOIN {t} USING (rowid) WHERE rowid < 12 OR rowid IS NULL GROUP BY rowid
SELECT a.rowid, b.rowid FROM {t} a JOIN {t} b ON b.rowid = a.rowid + 1 WHERE a.rowid IN ({l})
SELECT a.rowid, b.rowid FROM {t} a, {t} b WHERE a.rowid = {n} AND b.rowid = a.rowid
SELECT count(*) FROM pairs x JOIN {t} p ON p.rowid = x.a JOIN {t} q ON q.rowid = x.b
SELECT x.a, p.row = q.row FROM pairs x JOIN {t} p ON p.rowid = x.a LEFT JOIN {t} q ON q.rowid = p.rowid * 100
SELECT l.name, list(p.rowid ORDER BY p.rowid) FROM lists l, {t} p WHERE list_contains(l.ids, p.rowid) GROUP BY ALL
SELECT l.name, u.id, p.head FROM lists l, unnest(l.ids) u(id) JOIN {t} p ON p.rowid = u.id
SELECT name, h FROM lists, LATERAL (SELECT max(head) h FROM {t} WHERE rowid IN (SELECT unnest(ids))) s
SELECT unnest(ids) AS i, name FROM lists WHERE i IN (SELECT rowid FROM {t} WHERE rowid < 50)
SELECT r.rowid FROM (SELECT unnest([{l}]) AS id) k JOIN {t} r ON r.rowid = k.id
SELECT * FROM (VALUES ({n}), (NULL), (7)) v(id) JOIN {t} ON rowid = id
WITH k AS (SELECT id FROM keys WHERE id < 60) SELECT rowid, embedding FROM {t} WHERE rowid IN (FROM k)
WITH p AS (SELECT * FROM {t}) SELECT x.rowid FROM p x JOIN p y ON x.rowid = y.rowid WHERE x.rowid IN ({l})
WITH p AS MATERIALIZED (SELECT rowid, head FROM {t}) SELECT * FROM p WHERE rowid = {n} UNION ALL SELECT * FROM p WHERE rowid IN ({l})
WITH RECURSIVE w(i, h) AS (SELECT 0::BIGINT, NULL::INTEGER UNION ALL SELECT i + 40, (SELECT head FROM {t} p WHERE p.rowid = i + 40) FROM w WHERE i < 200) FROM w
WITH RECURSIVE w(i) AS (SELECT rowid FROM {t} WHERE rowid = {n} UNION SELECT p.rowid FROM {t} p, w WHERE p.rowid = w.i + 30) SELECT count(*), max(i) FROM w
SELECT rowid FROM {t} WHERE rowid = {n} UNION SELECT rowid FROM {t} WHERE rowid IN ({l}) ORDER BY 1 DESC
SELECT rowid FROM {t} WHERE rowid < 30 EXCEPT SELECT id FROM keys
SELECT rowid FROM {t} INTERSECT SELECT id FROM keys32
SELECT head, count(*) c FROM {t} WHERE rowid IN ({k}) GROUP BY head HAVING c > 0 ORDER BY head NULLS LAST
SELECT head, sum(rowid) FROM {t} WHERE rowid BETWEEN {n} AND 1500 GROUP BY ROLLUP (head) ORDER BY ALL
SELECT DISTINCT ON (head) head, rowid FROM {t} WHERE rowid < 300 ORDER BY head, rowid DESC
SELECT rowid, row_number() OVER (ORDER BY rowid DESC) n FROM {t} WHERE rowid IN ({l}) QUALIFY n <= 3 ORDER BY rowid
SELECT rowid, head FROM {t} QUALIFY row_number() OVER (PARTITION BY head ORDER BY rowid) = 1 ORDER BY rowid
SELECT rowid, lag(rowid) OVER w, sum(head) OVER w FROM {t} WHERE rowid < {n} WINDOW w AS (ORDER BY rowid ROWS 2 PRECEDING) ORDER BY ALL
SELECT rowid FROM {t} WHERE rowid > {n} ORDER BY rowid LIMIT 4 OFFSET 1
SELECT * FROM (SELECT rowid, row FROM {t} ORDER BY rowid DESC LIMIT 6) WHERE rowid % 2 = 0
SELECT rowid, head FROM {t} WHERE rowid IN (SELECT rowid FROM {t} ORDER BY rowid LIMIT 5 OFFSET 2)
SELECT max(embedding[1]) FROM {t} WHERE rowid IN ({l})
SELECT * REPLACE (hex(row) AS row) FROM {t} WHERE rowid = {n}
SELECT COLUMNS('r.*') FROM {t} WHERE rowid = {n}
SELECT COLUMNS(* EXCLUDE (embedding)) FROM {t} WHERE rowid IN ({l})
SELECT min(COLUMNS(['rowid', 'head'])) FROM {t} WHERE rowid >= {n}
SELECT t FROM {t} t WHERE rowid = {n}
SELECT t.rowid, struct_pack(e := t.embedding[1]) FROM {t} t WHERE t.rowid = {n}
SELECT rowid AS id FROM {t} WHERE id = {n}
SELECT rowid + 1 AS head FROM {t} WHERE head = {n}
SELECT embedding[1] x, x * 2 FROM {t} WHERE rowid IN ({l})
SELECT rowid FROM {t} WHERE (rowid, head) IN (SELECT id, w FROM keys)
SELECT rowid FROM {t} WHERE (rowid, head) = ({n}, 0)
SELECT rowid FROM {t} WHERE rowid = 'x'
SELECT rowid FROM {t} WHERE rowid = '{n}'
SELECT rowid FROM {t} WHERE rowid = {n}.5
SELECT rowid FROM {t} WHERE rowid = {n}.0
SELECT rowid FROM {t} WHERE rowid IN ({n}, {n}.5, '7')
SELECT rowid FROM {t} WHERE rowid = NULL
SELECT rowid FROM {t} WHERE rowid IS NULL
SELECT rowid FROM {t} WHERE rowid IN (NULL)
SELECT rowid FROM {t} WHERE rowid = 99999999999999999999
SELECT rowid FROM {t} WHERE rowid IN ({n}, 99999999999999999999)
SELECT rowid FROM {t} WHERE rowid BETWEEN -5 AND 99999999999999999999 AND rowid < 4
SELECT rowid FROM {t} WHERE rowid = ALL (SELECT id FROM keys WHERE id = {n})
SELECT rowid FROM {t} WHERE rowid = (SELECT id FROM keys WHERE id = 7)
SELECT rowid FROM {t} WHERE rowid IN (SELECT id FROM keysx)
SELECT rowid FROM {t} WHERE rowid IN (SELECT id FROM keysd)
SELECT rowid FROM {t} WHERE rowid IN (SELECT id FROM keysn)
SELECT rowid FROM {t} WHERE rowid IN (SELECT id FROM keysh)
SELECT rowid FROM {t} WHERE rowid IN (SELECT id FROM keysu)
SELECT rowid FROM {t} WHERE rowid IN (SELECT id FROM keyst)
SELECT rowid FROM {t} WHERE rowid IN (SELECT id FROM keysb)
SELECT rowid FROM {t} WHERE rowid IN (SELECT id, w FROM keys)
SELECT rowid FROM {t} WHERE rowid IN (SELECT rowid)
SELECT rowid FROM {t} WHERE rowid IN (SELECT w FROM nokeys)
SELECT rowid FROM {t} WHERE rowid NOT IN (SELECT w FROM nokeys) AND rowid < 3
SELECT rowid FROM {t} WHERE nothing = {n}
SELECT nothing FROM {t} WHERE rowid = {n}
SELECT rowid FROM {t} WHERE rowid = {n} GROUP BY head
SELECT rowid FROM {t} WHERE count(*) = {n}
SELECT rowid FROM {t} WHERE rowid = {n} AND
SELECT rowid FROM {t} JOIN keys ON id = rowid
SELECT rowid FROM nothere JOIN {t} USING (rowid)
SELECT p.rowid FROM {t} WHERE rowid = {n}
SELECT main.{t}.rowid FROM main.{t} WHERE {t}.rowid = {n}
SELECT {t}.rowid, {t}.head FROM {t} WHERE {t}.rowid IN ({l})
SELECT "ROWID", Head FROM {t} WHERE RowId = {n}
/* {t} */ SELECT rowid -- WHERE rowid = 3\nFROM {t} WHERE rowid = {n}
SELECT rowid, '{t} WHERE rowid = 3' AS said FROM {t} WHERE rowid IN ({l});
SELECT rowid FROM {t} WHERE rowid IN ({l},)
SELECT rowid, FROM {t} WHERE rowid = {n}
SELECT rowid FROM {t} WHERE rowid in (SELECT (unnest([{l}])))
SELECT rowid FROM {t} WHERE rowid = ANY (SELECT id FROM keys)
SELECT rowid FROM {t} WHERE rowid >= ALL (SELECT id FROM keys WHERE id < 100) AND rowid < 99
SELECT rowid FROM {t} WHERE [rowid] = [{n}]
SELECT rowid FROM {t} WHERE rowid::VARCHAR IN ('{n}')
SELECT rowid FROM {t} WHERE NOT rowid <> {n}
SELECT rowid FROM {t} WHERE NOT (rowid <> {n} OR head IS NULL)
SELECT rowid FROM {t} WHERE rowid = {n} IS TRUE
SELECT rowid FROM {t} WHERE (rowid = {n}) = true
SELECT rowid FROM {t} WHERE CASE WHEN rowid = {n} THEN true ELSE rowid = 7 END
SELECT rowid FROM {t} WHERE coalesce(rowid = {n}, false)
SELECT rowid FROM {t} WHERE if(rowid > 5, rowid = {n}, rowid = 1)
SELECT rowid FROM {t} WHERE rowid = {n} OR 1 = 1 LIMIT 0
SELECT rowid FROM {t} WHERE rowid IN ({l}) OR NULL
SELECT rowid FROM {t} WHERE rowid = 3 AND rowid = 5
SELECT rowid FROM {t} WHERE rowid IN ({l}) AND rowid IN ({k})
SELECT rowid FROM {t} WHERE rowid BETWEEN 9 AND 5
SELECT rowid FROM {t} WHERE rowid BETWEEN SYMMETRIC 9 AND 5
PIVOT (SELECT head, rowid FROM {t} WHERE rowid < 120) ON head USING count(*)
SELECT * FROM (UNPIVOT (SELECT rowid, head::BIGINT AS head FROM {t} WHERE rowid IN ({l})) ON rowid, head) ORDER BY ALL
SELECT grouping(head), count(*) FROM {t} WHERE rowid IN ({l}) GROUP BY GROUPING SETS ((), (head))
SELECT rowid FROM {t} TABLESAMPLE 100% WHERE rowid IN ({l})
SELECT count(*) FROM {t} USING SAMPLE 100 PERCENT (bernoulli)
SELECT count(*) FROM (FROM {t} USING SAMPLE 5 ROWS)
SELECT count(*) FROM {t} USING SAMPLE reservoir(7 ROWS) REPEATABLE (1)
SELECT * FROM (SELECT rowid i, head h FROM {t}) q WHERE q.i = {n}
SELECT q.* FROM (SELECT rowid + 1 AS rowid FROM {t}) q WHERE q.rowid = {n}
SELECT * FROM (SELECT -rowid AS rowid FROM {t}) WHERE rowid IN (-5, -7, {n})
SELECT * FROM (SELECT head AS rowid FROM {t}) WHERE rowid = 1
SELECT * FROM (SELECT rowid, count(*) OVER () AS every FROM {t}) WHERE rowid = {n}
SELECT * FROM (SELECT rowid, row_number() OVER (ORDER BY rowid DESC) AS n FROM {t}) WHERE rowid IN ({l})
SELECT * FROM (SELECT rowid FROM {t} ORDER BY rowid LIMIT 10) WHERE rowid IN ({l})
SELECT * FROM (SELECT DISTINCT head, rowid FROM {t}) WHERE rowid IN ({l})
SELECT * FROM (SELECT max(rowid) AS rowid, head FROM {t} GROUP BY head) WHERE rowid < {n}
SELECT * FROM (SELECT rowid, (SELECT count(*) FROM {t}) c FROM {t}) WHERE rowid = {n}
SELECT * FROM {t} a POSITIONAL JOIN (SELECT rowid AS other FROM {t} WHERE rowid < 5) b WHERE a.rowid < 9
SELECT k.id, p.rowid FROM keys k ASOF JOIN {t} p ON k.id >= p.rowid
SELECT k.id, p.rowid FROM keys k ASOF LEFT JOIN {t} p ON k.id > p.rowid ORDER BY ALL
SELECT rowid FROM {t} WHERE rowid = {n} AND embedding[1] > -1e9
SELECT rowid FROM {t} WHERE octet_length(row) > 0 AND rowid IN ({l}) AND head IN (0, 1, 2)
SELECT rowid FROM {t} WHERE head = 1 AND rowid > 12 AND rowid < {n}
SELECT rowid, hex(row)[1:8] FROM {t} WHERE head = 2 ORDER BY rowid LIMIT 3
SELECT p.rowid FROM renamed v JOIN {t} p ON p.rowid = v.rid WHERE v.rid IN ({l})
SELECT * EXCLUDE (e, payload) FROM renamed WHERE rid IN ({l})
SELECT e[1], rid FROM renamed WHERE rid = {n} AND h = 0
SELECT rid, h FROM above WHERE rid BETWEEN {n} AND {n} + 3
FROM unioned WHERE rowid IN ({l})
SELECT rowid, other FROM kept_join WHERE rowid = {n}
SELECT rowid, bytes FROM kept WHERE rowid IN ({l}) ORDER BY ALL
SELECT k.id, v.rid FROM keys k LEFT JOIN renamed v ON v.rid = k.id
SELECT v.rowid FROM narrowed v JOIN keys k ON k.id = v.rowid
SELECT k.id, p.rowid FROM arrow_keys k LEFT JOIN {t} p ON p.rowid = k.id
SELECT rowid FROM {t} WHERE rowid IN (SELECT id FROM numpy_keys)
SELECT rowid FROM {t} WHERE rowid IN (FROM arrow_keys SELECT id)
SELECT * FROM numpy_keys k JOIN {t} p ON k.id = p.rowid ORDER BY p.rowid
SELECT rowid FROM {t} WHERE rowid = getvariable('wanted')
SELECT rowid FROM {t} WHERE rowid IN (SELECT range FROM range(0, 100, 9))
SELECT r.i, p.head FROM range(100, 125) r(i) LEFT JOIN {t} p ON p.rowid = r.i
SELECT g.i FROM generate_series(0, 300, 50) g(i) ANTI JOIN {t} p ON p.rowid = g.i
EXECUTE nothing_prepared({n})
SELECT rowid FROM query('SELECT rowid FROM {t} WHERE rowid = {n}')
SELECT count(*) FROM query_table('{t}')
SELECT rowid FROM {t} AS "{t} 2" WHERE "{t} 2".rowid = {n}
SELECT list(rowid ORDER BY rowid) FROM (SELECT DISTINCT rowid FROM {t} WHERE rowid IN ({k}))
SELECT any_value(head) FROM {t} WHERE rowid = {n}
SELECT count(*) FILTER (WHERE rowid = {n}) FROM {t}
SELECT sum(CASE WHEN rowid IN ({l}) THEN 1 END) FROM {t}
SELECT bool_or(rowid = {n}) FROM {t} WHERE rowid < {n} + 1
SELECT rowid IN ({l}) AS hit, count(*) FROM {t} GROUP BY 1 ORDER BY 1

CREATE TABLE scratch AS SELECT * FROM {t} WHERE rowid IN ({l}) ;; FROM scratch ORDER BY ALL
CREATE OR REPLACE TEMP TABLE scratch AS SELECT k.id, p.head, p.row FROM keys k LEFT JOIN {t} p ON p.rowid = k.id ;; FROM scratch ORDER BY ALL
CREATE TABLE scratch (i BIGINT, h INTEGER) ;; INSERT INTO scratch SELECT rowid, head FROM {t} WHERE rowid = {n} ;; INSERT INTO scratch (i) SELECT rowid FROM {t} WHERE rowid IN ({k}) ;; FROM scratch ORDER BY ALL
CREATE TABLE scratch AS FROM keys ;; DELETE FROM scratch WHERE id IN (SELECT rowid FROM {t} WHERE rowid < {n}) ;; FROM scratch ORDER BY ALL
CREATE TABLE scratch AS FROM keys ;; DELETE FROM scratch WHERE id NOT IN (SELECT rowid FROM {t}) ;; FROM scratch ORDER BY ALL
CREATE TABLE scratch AS FROM keys ;; DELETE FROM scratch USING {t} p WHERE p.rowid = scratch.id AND p.head = 0 ;; FROM scratch ORDER BY ALL
CREATE TABLE scratch AS FROM keys ;; UPDATE scratch SET w = (SELECT head FROM {t} WHERE {t}.rowid = scratch.id) ;; FROM scratch ORDER BY ALL
CREATE TABLE scratch AS FROM keys ;; UPDATE scratch SET w = p.head FROM {t} p WHERE p.rowid = scratch.id ;; FROM scratch ORDER BY ALL
CREATE TABLE scratch AS FROM keys ;; UPDATE scratch SET tag = 'hit' WHERE id IN (SELECT rowid FROM {t} WHERE rowid IN ({l})) ;; FROM scratch ORDER BY ALL
CREATE TABLE scratch (i BIGINT UNIQUE, h INTEGER) ;; INSERT INTO scratch SELECT rowid, 1 FROM {t} WHERE rowid < 9 ON CONFLICT DO NOTHING ;; INSERT INTO scratch SELECT rowid, 2 FROM {t} WHERE rowid IN (5, 6, 20) ON CONFLICT DO UPDATE SET h = excluded.h + 5 ;; FROM scratch ORDER BY ALL
CREATE TABLE scratch AS FROM keys32 ;; MERGE INTO scratch USING (SELECT rowid, head FROM {t} WHERE rowid < 6) p ON p.rowid = scratch.id WHEN MATCHED THEN UPDATE SET w = 50 WHEN NOT MATCHED THEN INSERT VALUES (p.rowid, p.head) ;; FROM scratch ORDER BY ALL
CREATE VIEW scratch AS SELECT rowid AS i, head, row FROM {t} ;; SELECT * FROM scratch WHERE i IN ({l})
CREATE TEMP VIEW scratch AS FROM {t} ;; SELECT count(row) FROM scratch JOIN keys ON id = scratch.rowid
CREATE MACRO scratch(i) AS TABLE SELECT rowid, head FROM {t} WHERE rowid = i ;; FROM scratch({n})
CREATE MACRO scratch(i) AS (SELECT head FROM {t} WHERE rowid = i) ;; SELECT id, scratch(id) FROM keys
CREATE TABLE scratch AS SELECT {n}::BIGINT AS id ;; SELECT p.row FROM scratch JOIN {t} p ON p.rowid = id
CREATE TEMP TABLE v41_l1 AS SELECT 5::BIGINT AS rowid, 'mine' AS head ;; SELECT * FROM v41_l1 WHERE rowid = 5
CREATE TEMP TABLE v41_l1 AS SELECT {n}::BIGINT AS rowid, 'mine' AS head ;; SELECT p.rowid, m.head FROM ple p JOIN v41_l1 m ON p.rowid = m.rowid
CREATE TEMP TABLE keys AS SELECT 5::BIGINT AS id ;; SELECT p.rowid FROM ple p JOIN keys ON keys.id = p.rowid
CREATE TEMP VIEW v41_l3 AS SELECT 9 AS rowid ;; SELECT * FROM v41_l3 WHERE rowid IN (9, 10)
CREATE SCHEMA other ;; CREATE TABLE other.ple AS SELECT 5 AS rowid, 'other' AS head ;; SELECT a.head, b.head FROM other.ple a JOIN ple b ON a.rowid = b.rowid
CREATE SCHEMA other ;; CREATE TABLE other.ple AS SELECT 5 AS rowid, 'other' AS head ;; SET search_path = 'other,main' ;; SELECT head FROM ple WHERE rowid = 5
PREPARE scratch AS SELECT rowid, head FROM {t} WHERE rowid = $1 OR rowid IN ($2, {n}) ;; EXECUTE scratch(5, {n})
PREPARE scratch AS SELECT rowid FROM {t} WHERE rowid IN (SELECT unnest($1)) ;; EXECUTE scratch([{l}])
SET VARIABLE chosen = [{l}] ;; SELECT rowid, octet_length(row) FROM {t} WHERE rowid IN (SELECT unnest(getvariable('chosen')))
SET VARIABLE chosen = [{l}] ;; SELECT rowid FROM {t} WHERE list_contains(getvariable('chosen'), rowid)
BEGIN ;; CREATE TABLE scratch AS SELECT rowid FROM {t} WHERE rowid < {n} ;; ROLLBACK ;; SELECT count(*) FROM {t} WHERE rowid < {n}
SELECT 1; CREATE TABLE scratch AS SELECT rowid FROM {t} WHERE rowid = {n}; INSERT INTO scratch SELECT rowid FROM {t} WHERE rowid IN ({l}) ;; SELECT 3; FROM scratch ORDER BY ALL
SET VARIABLE wanted = {n}; SELECT 1 ;; SELECT rowid, hex(row) FROM {t} WHERE rowid = getvariable('wanted')

SELECT w, engram_head('ple', w), engram_row('ple', w) IS NULL, engram_vector('ple', w)[1] FROM keys
SELECT f.ord, f.rowid, p.head FROM engram_fetch('ple', [5, 7, 5, NULL]) f JOIN {t} p ON p.rowid = f.rowid
SELECT p.rowid, engram_row('ple', p.rowid) = p.row FROM ple p WHERE p.rowid IN (0, 5, 7)
SELECT s.rowid, p.rowid FROM engram_scan('v41_l1') s JOIN {t} p ON p.rowid = s.rowid WHERE s.head = 1
SELECT count(*) FROM {t} a, keysb k RIGHT JOIN keysn j ON a.rowid = 1
SELECT count(*), count(k.id), count(j.id) FROM {t} a, keys32 k LEFT JOIN keys16 j ON a.rowid = j.id
SELECT count(*), count(k.id), count(j.id) FROM {t} a, keys32 k RIGHT JOIN keys16 j ON a.rowid = j.id
SELECT count(*), count(k.id), count(j.id) FROM {t} a, keys32 k FULL JOIN keys16 j ON a.rowid = j.id
SELECT count(*), count(k.id), count(j.id) FROM {t} a, keys32 k JOIN keys16 j ON a.rowid = j.id
SELECT count(*), count(p.rowid), max(p.head) FROM keys k, keys32 j RIGHT JOIN {t} p ON p.rowid = k.id
SELECT count(*), count(p.rowid), max(p.head) FROM keys k, keys32 j LEFT JOIN {t} p ON p.rowid = k.id
SELECT count(*), count(p.rowid), max(p.head) FROM keys k, {t} p RIGHT JOIN keys32 j ON p.rowid = k.id
SELECT count(*), count(p.rowid), max(p.head) FROM keys k, {t} p LEFT JOIN keys32 j ON p.rowid = k.id
SELECT count(*), count(a.rowid), count(b.rowid) FROM {t} a, {t} b RIGHT JOIN keys32 j ON a.rowid = b.rowid
SELECT count(*) FROM {t} a, keys k SEMI JOIN {t} b ON b.rowid = a.rowid AND a.rowid = k.id
SELECT count(*) FROM {t} a, keys k ANTI JOIN {t} b ON b.rowid = a.rowid
SELECT count(*) FROM (SELECT unnest([5, 7])::BIGINT AS rowid) a, (SELECT rowid AS o) b JOIN keys k ON k.id <> a.rowid JOIN {t} p ON a.rowid = p.rowid
SELECT count(*), max(p.head) FROM keys a, (SELECT a.id AS o) b JOIN keys32 k ON k.id <> a.id LEFT JOIN {t} p ON a.id = p.rowid
