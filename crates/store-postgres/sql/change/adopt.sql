-- Makes the numbers of the events valid if the database was moved from another cluster and nothing was folded since.
SELECT {schema}.leasehold_fold() AS folded
FROM (SELECT r.cluster FROM {schema}.request_fold r ORDER BY r.id DESC LIMIT 1) f WHERE f.cluster <> {schema}.leasehold_cluster()
