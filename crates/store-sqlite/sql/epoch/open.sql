-- Begins an epoch at the newest event. The id is not 0, which stands for none.
INSERT INTO epoch (number, id, start_position, opened_at)
SELECT coalesce((SELECT max(number) FROM epoch), 0) + 1, (random() & 9223372036854775807) | 1,
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'request_event'), 0), ?1
