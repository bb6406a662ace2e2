-- Tables: one against another, and what a table is made of.
--
-- Two tables are compared by value, so their formats may differ; rows and values per row must not. Both are read whole.

-- engram_distance(a, b) -> (head, rows, changed, not_finite, l2_mean, l2_max, cosine_mean, max_abs)
--
-- How far the rows of two tables lie apart, head by head, over all rows of the head: rows compared, rows with any value
-- that differs, mean and largest Euclidean distance, mean cosine (rows that are zero in one table left out), largest
-- absolute difference of two values. Equal values, NaN and infinite ones among them, are no distance apart. not_finite:
-- rows whose distance is not finite, since a NaN or an infinite value stands against another one; means and maxima leave
-- them out, and the cosine all rows with such a value. A line with head NULL is of the rows that no head reaches.
--
-- Example: SELECT * FROM engram_distance('ple', 'tuned') LIMIT 3
CREATE OR REPLACE MACRO main.engram_distance(a, b) AS TABLE
SELECT _r.head AS head, count(*) AS rows, count(*) FILTER (_r.d.changed) AS changed,
    count(*) FILTER (NOT isfinite(_r.d.l2)) AS not_finite, avg(_r.d.l2) FILTER (isfinite(_r.d.l2)) AS l2_mean,
    max(_r.d.l2) FILTER (isfinite(_r.d.l2)) AS l2_max, avg(_r.d.cosine) AS cosine_mean,
    max(_r.d.max_abs) FILTER (isfinite(_r.d.l2)) AS max_abs
FROM (SELECT _i.head AS head, _engram_row_distance(a, b, _i.rowid) AS d FROM _engram_ids(a) AS _i) AS _r
GROUP BY _r.head
ORDER BY _r.head NULLS LAST;

-- engram_drift(a, b) -> (head, rows, changed, changed_share, not_finite, relative_p50, relative_p90, relative_p99, relative_max, cosine_min, born, died)
--
-- What became of the rows of checkpoint a in checkpoint b, head by head: rows with any value that differs, and their share.
-- relative: the Euclidean distance of a changed row over its norm in a; its median, 90th and 99th percentile
-- (approximate) and maximum over the changed rows that were not zero. cosine_min: the smallest cosine of a changed row.
-- born: rows that were zero and are not; died: rows that are zero and were not. not_finite: rows whose distance is not
-- finite, since a NaN or an infinite value stands against another one; they are in rows and changed and in nothing else. A
-- line with head NULL is of the rows that no head reaches. engram_changed_rows lists the rows.
--
-- Example: SELECT head, rows, changed, relative_p50, born, died FROM engram_drift('ple', 'tuned') LIMIT 3
CREATE OR REPLACE MACRO main.engram_drift(a, b) AS TABLE
WITH _engram_distances AS (
    SELECT _i.head AS head, _engram_row_distance(a, b, _i.rowid) AS d FROM _engram_ids(a) AS _i
), _engram_relative AS (
    SELECT head, d, isfinite(d.l2) AS known,
        CASE WHEN d.changed AND isfinite(d.l2) AND isfinite(d.norm_a) THEN d.l2 / nullif(d.norm_a, 0) END AS relative
    FROM _engram_distances
), _engram_heads AS (
    SELECT head, count(*) AS rows, count(*) FILTER (d.changed) AS changed, count(*) FILTER (NOT known) AS not_finite,
        approx_quantile(relative, [0.5, 0.9, 0.99]) AS quantiles, max(relative) AS relative_max,
        min(d.cosine) FILTER (d.changed) AS cosine_min,
        count(*) FILTER (known AND d.norm_a = 0 AND d.norm_b <> 0) AS born,
        count(*) FILTER (known AND d.norm_a <> 0 AND d.norm_b = 0) AS died
    FROM _engram_relative GROUP BY head
)
SELECT head, rows, changed, changed / rows AS changed_share, not_finite, quantiles[1] AS relative_p50,
    quantiles[2] AS relative_p90, quantiles[3] AS relative_p99, relative_max, cosine_min, born, died
FROM _engram_heads
ORDER BY head NULLS LAST;

-- engram_changed_rows(a, b) -> (rowid, head, norm_a, norm_b, l2, relative, cosine, max_abs)
--
-- The rows with any value that differs between two tables, in no order: Euclidean norm in each, Euclidean distance, that
-- over the norm in a (NULL for a row that is zero in a), cosine (NULL where one of the two is zero) and the largest
-- absolute difference of two values. Norm and distance are NaN or infinite where values make them so; relative and cosine
-- are NULL where a norm or distance that they need is not finite.
--
-- Example: SELECT count(*) AS changed FROM engram_changed_rows('ple', 'tuned') WHERE relative > 0.01
CREATE OR REPLACE MACRO main.engram_changed_rows(a, b) AS TABLE
SELECT _r.rowid AS rowid, _r.head AS head, _r.d.norm_a AS norm_a, _r.d.norm_b AS norm_b, _r.d.l2 AS l2,
    CASE WHEN isfinite(_r.d.l2) AND isfinite(_r.d.norm_a) THEN _r.d.l2 / nullif(_r.d.norm_a, 0) END AS relative,
    _r.d.cosine AS cosine, _r.d.max_abs AS max_abs
FROM (SELECT _i.rowid AS rowid, _i.head AS head, _engram_row_distance(a, b, _i.rowid) AS d
    FROM _engram_ids(a) AS _i) AS _r
WHERE _r.d.changed;

-- engram_head_primes(table) -> (head, ngram_order, size, is_prime, size_gap, first_row, rows, row_gap)
--
-- The heads of a table and what hashing needs of them: whether the head size is prime (checked), how much larger it is than
-- that of the head before, and how many rows lie between the two heads (0 where they lie side by side).
--
-- Example: SELECT * FROM engram_head_primes('ple') LIMIT 3
CREATE OR REPLACE MACRO main.engram_head_primes("table") AS TABLE
SELECT _h.head AS head, _h.ngram_order AS ngram_order, _h.size AS size, _engram_is_prime(_h.size) AS is_prime,
    _h.size - lag(_h.size) OVER (ORDER BY _h.head) AS size_gap, _h.first_row AS first_row, _h.rows AS rows,
    _h.first_row - coalesce(lag(_h.first_row + _h.rows) OVER (ORDER BY _h.head), 0) AS row_gap
FROM engram_heads("table") AS _h
ORDER BY _h.head;
