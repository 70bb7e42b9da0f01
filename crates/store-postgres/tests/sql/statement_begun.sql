-- Whether a statement that contains the text $1 has begun since another session began its open transaction.
SELECT EXISTS (
    SELECT FROM pg_stat_activity s JOIN pg_stat_activity o ON o.datname = s.datname AND o.state = 'idle in transaction'
    WHERE s.datname = current_database() AND strpos(s.query, $1) > 0 AND s.query_start > o.xact_start
) AS begun
