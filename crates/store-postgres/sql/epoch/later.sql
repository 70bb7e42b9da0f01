-- Returns the lowest transaction number of the epochs after the epoch $1, and whether all of them continued its history; neither if it is not known.
SELECT min(l.start_xid::text::bigint) AS start_xid, bool_and(l.cause IN ('restarted', 'rewound')) AS is_continued
FROM {schema}.epoch e JOIN {schema}.epoch l ON l.number > e.number WHERE e.id = $1
