WITH
-- Our tables; those of the migration library are its own affair.
tables AS (
    SELECT oid, relname::text AS name
    FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname NOT LIKE '\_sqlx%'
),
titles AS (
    SELECT name, 0 AS part, 0 AS place, '' AS tie, 'table ' || name AS line
    FROM tables
),
columns AS (
    SELECT name, 1 AS part, a.attnum::int AS place, '' AS tie,
           concat_ws(' ',
               '    ' || a.attname,
               format_type(a.atttypid, a.atttypmod),
               CASE WHEN a.attcollation NOT IN (0, 'default'::regcollation)
                    THEN 'collate "' || c.collname || '"' END,
               CASE WHEN a.attnotnull THEN 'not null' END,
               'default ' || pg_get_expr(d.adbin, d.adrelid)
           ) AS line
    FROM tables
    JOIN pg_attribute a ON a.attrelid = tables.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_collation c ON c.oid = a.attcollation
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
),
-- Keys, uniques, references, checks. Later servers also list NOT NULL here; columns show it.
constraints AS (
    SELECT name, 2 AS part, 0 AS place, k.conname::text AS tie,
           '    constraint ' || k.conname || ' ' || pg_get_constraintdef(k.oid) AS line
    FROM tables
    JOIN pg_constraint k ON k.conrelid = tables.oid AND k.contype IN ('p', 'u', 'f', 'c', 'x')
),
-- Those that no constraint brings with it.
indexes AS (
    SELECT name, 3 AS part, 0 AS place, i.indexrelid::regclass::text AS tie,
           '    ' || pg_get_indexdef(i.indexrelid) AS line
    FROM tables
    JOIN pg_index i ON i.indrelid = tables.oid
    WHERE NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid
                                                    AND k.conrelid = i.indrelid)
),
triggers AS (
    SELECT name, 4 AS part, 0 AS place, t.tgname::text AS tie, '    ' || pg_get_triggerdef(t.oid) AS line
    FROM tables
    JOIN pg_trigger t ON t.tgrelid = tables.oid AND NOT t.tgisinternal
),
-- They come after the tables.
functions AS (
    SELECT 'table_' || p.proname AS name, 5 AS part, line.place::int, '' AS tie,
           CASE WHEN line.place = 1 THEN 'function ' || p.proname ELSE '    ' || line.text END AS line
    FROM pg_proc p,
         regexp_split_to_table(rtrim(p.prosrc, E'\n'), E'\n') WITH ORDINALITY AS line (text, place)
    WHERE p.pronamespace = 'public'::regnamespace
)
SELECT line
FROM (
    SELECT * FROM titles
    UNION ALL SELECT * FROM columns
    UNION ALL SELECT * FROM constraints
    UNION ALL SELECT * FROM indexes
    UNION ALL SELECT * FROM triggers
    UNION ALL SELECT * FROM functions
) AS lines
ORDER BY name COLLATE "C", part, place, tie COLLATE "C"
