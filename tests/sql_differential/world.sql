-- Tables of keys, the same in both worlds: ids at the edges of the registered tables, in several of them, in none, repeated,
-- negative and NULL, in columns of every kind.
CREATE TABLE keys AS SELECT id, 'k' || row_number() OVER () AS tag, (row_number() OVER () % 5)::INTEGER AS w FROM (VALUES (0), (1), (5), (5), (7), (7), (7), (52), (53), (111), (112), (151), (251), (252), (255), (256), (700), (1391), (1392), (1407), (1408), (-1), (-7), (NULL), (NULL), (4611686018427387000)) v(id);
CREATE TABLE keys32 AS SELECT * FROM (VALUES (3::INTEGER, 1), (4, 2), (2000000000, 0), (-3, 1), (NULL, 2), (111, 3)) v(id, w);
CREATE TABLE keys16 AS SELECT id::SMALLINT AS id FROM (VALUES (1), (2), (2), (250), (30000), (-5), (NULL)) v(id);
CREATE TABLE keysu AS SELECT id::UBIGINT AS id, w FROM (VALUES (4, 1), (9, 2), (18446744073709550000, 3), (1407, 4)) v(id, w);
CREATE TABLE keysh AS SELECT id::HUGEINT AS id FROM (VALUES (6), (6), (1408), (10000000000000000000000000000000000), (NULL)) v(id);
CREATE TABLE keysd AS SELECT id::DOUBLE AS id, w FROM (VALUES (5, 1), (5.5, 2), ('nan', 3), ('-inf', 4), (-0.0, 5), (1e300, 6), (NULL, 7)) v(id, w);
CREATE TABLE keyst AS SELECT * FROM (VALUES ('5', 1), ('7', 2), ('007', 3), (NULL, 4), ('99999', 5)) v(id, w);
CREATE TABLE keysx AS SELECT * FROM (VALUES ('5', 1), ('seven', 2)) v(id, w);
CREATE TABLE keysn AS SELECT id::DECIMAL(18, 2) AS id FROM (VALUES (5), (5.5), (111), (-1), (NULL)) v(id);
CREATE TABLE keysb AS SELECT id::BOOLEAN AS id FROM (VALUES (true), (false), (NULL)) v(id);
CREATE TABLE nokeys AS SELECT 5::BIGINT AS id, 1 AS w LIMIT 0;
CREATE TABLE ridkeys AS SELECT id AS rowid, (id % 4)::INTEGER AS head, 'n' || id AS note FROM (VALUES (5), (8), (60), (60), (200), (-2), (NULL)) v(id);
CREATE TABLE pairs AS SELECT i AS a, (i * 37) % 300 AS b, 'p' || i AS name FROM range(0, 40) r(i);
CREATE TABLE lists AS SELECT * FROM (VALUES ([1, 2, 3]::BIGINT[], 'x'), ([7, 7], 'y'), ([], 'z'), ([100], NULL)) v(ids, name);

-- Views over registered tables.
CREATE VIEW renamed AS SELECT rowid AS rid, head AS h, embedding AS e, row AS payload FROM ple;
CREATE VIEW listed AS SELECT * FROM v41_l3;
CREATE VIEW narrowed AS SELECT * FROM ple WHERE head < 4 AND rowid % 2 = 0;
CREATE VIEW unioned AS SELECT rowid, head, row FROM v41_l1 UNION ALL SELECT rowid, head, row FROM v41_l3;
CREATE VIEW above AS SELECT rid + 1 AS rid, h FROM renamed WHERE h IS NOT NULL;
SET VARIABLE wanted = 42;
