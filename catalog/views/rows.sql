-- Rows: what the rows of one table hold. Each of these reads the whole table.

-- engram_row_norms(table) -> (rowid, head, norm, mean, stddev, min, max, zeros, nans, infs)
--
-- One line per row, in no order: Euclidean norm, mean and population standard deviation, NULL where the row holds a NaN or
-- an infinite value; smallest and largest finite value, NULL where none is finite. zeros, nans, infs: values that are zero,
-- NaN, infinite. head is NULL where no head reaches.
--
-- Example: SELECT * FROM engram_row_norms('ple') ORDER BY norm DESC LIMIT 3
CREATE OR REPLACE MACRO main.engram_row_norms("table") AS TABLE
SELECT _r.rowid AS rowid, _r.head AS head,
    CASE WHEN _r.s.nans + _r.s.infs = 0 THEN sqrt(_r.s.sum_squares) END AS norm,
    CASE WHEN _r.s.nans + _r.s.infs = 0 THEN _r.s.mean END AS mean,
    CASE WHEN _r.s.nans + _r.s.infs = 0 THEN _r.s.stddev END AS stddev,
    _r.s.min AS min, _r.s.max AS max, _r.s.zeros AS zeros, _r.s.nans AS nans, _r.s.infs AS infs
FROM (SELECT _i.rowid AS rowid, _i.head AS head, engram_row_stats("table", _i.rowid) AS s
    FROM _engram_ids("table") AS _i) AS _r;

-- engram_dead_rows(table) -> (rowid, head)
--
-- The rows whose every value is zero, in no order. head is NULL where no head reaches, as for the padding at the end.
--
-- Example: SELECT count(*) AS dead, count(head) AS reachable FROM engram_dead_rows('ple')
CREATE OR REPLACE MACRO main.engram_dead_rows("table") AS TABLE
SELECT _i.rowid AS rowid, _i.head AS head
FROM _engram_ids("table") AS _i WHERE _engram_row_kind("table", _i.rowid).dead;

-- engram_constant_rows(table) -> (rowid, head, value)
--
-- The rows whose values are all equal to one value that is not zero, in no order.
--
-- Example: SELECT count(*) AS constant FROM engram_constant_rows('ple')
CREATE OR REPLACE MACRO main.engram_constant_rows("table") AS TABLE
SELECT _i.rowid AS rowid, _i.head AS head, engram_vector("table", _i.rowid)[1] AS value
FROM _engram_ids("table") AS _i WHERE _engram_row_kind("table", _i.rowid).constant;

-- engram_nonfinite_rows(table) -> (rowid, head, nans, infs)
--
-- The rows that hold a NaN or an infinite value, and how many of each, in no order.
--
-- Example: SELECT count(*) AS found, sum(nans) AS nans FROM engram_nonfinite_rows('ple')
CREATE OR REPLACE MACRO main.engram_nonfinite_rows("table") AS TABLE
SELECT _r.rowid AS rowid, _r.head AS head, _r.s.nans AS nans, _r.s.infs AS infs
FROM (SELECT _i.rowid AS rowid, _i.head AS head, engram_row_stats("table", _i.rowid) AS s
    FROM _engram_ids("table") AS _i WHERE NOT _engram_row_kind("table", _i.rowid).finite) AS _r;

-- engram_duplicate_rows(table) -> (first_rowid, rowid, head, copies)
--
-- Every row whose bytes an earlier row has too, in no order. first_rowid: the first row of these bytes; copies: how many
-- rows have them, the first among them. Rows are found by a hash of 128 bits, by which copies counts, and each line is
-- proven by the bytes of its two rows. What does not fit DuckDB's memory_limit, 32 bytes and more per row of the table,
-- goes to its temp_directory.
--
-- Example: SELECT count(*) AS repeated FROM engram_duplicate_rows('ple')
CREATE OR REPLACE MACRO main.engram_duplicate_rows("table") AS TABLE
WITH _engram_hashes AS MATERIALIZED (
    SELECT _i.rowid AS id, _i.head AS head, engram_row_hash("table", _i.rowid) AS hash FROM _engram_ids("table") AS _i
), _engram_firsts AS (
    SELECT hash, min(id) AS first_id, count(*) AS copies FROM _engram_hashes GROUP BY hash HAVING count(*) > 1
)
SELECT _f.first_id AS first_rowid, _h.id AS rowid, _h.head AS head, _f.copies AS copies
FROM _engram_hashes AS _h JOIN _engram_firsts AS _f ON _f.hash = _h.hash
WHERE _h.id > _f.first_id AND engram_row("table", _h.id) = engram_row("table", _f.first_id);

-- engram_scale_ranges(table) -> (head, rows, scale_min, scale_max, scale_ratio_max)
--
-- The block scales of each head, as the rows store them: rows of the head, the smallest and largest scale, and the largest
-- ratio between two scales of one row (rows with a scale of zero left out). NULL for formats that store none in the rows.
-- A line with head NULL is of the rows that no head reaches.
--
-- Example: SELECT * FROM engram_scale_ranges('engram_l1') LIMIT 3
CREATE OR REPLACE MACRO main.engram_scale_ranges("table") AS TABLE
SELECT _r.head AS head, count(*) AS rows, min(_r.s.min) AS scale_min, max(_r.s.max) AS scale_max,
    max(CASE WHEN _r.s.min > 0 AND isfinite(_r.s.min) THEN _r.s.max::DOUBLE / _r.s.min END) AS scale_ratio_max
FROM (SELECT _i.head AS head, _engram_row_scales("table", _i.rowid) AS s FROM _engram_ids("table") AS _i) AS _r
GROUP BY _r.head
ORDER BY _r.head NULLS LAST;
