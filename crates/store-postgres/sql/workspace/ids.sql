-- Returns the ids of the workspaces with the names $1 that are not deleted.
SELECT w.id, w.name FROM {schema}.workspace w WHERE w.name = ANY ($1::text[]) AND w.deleted_at IS NULL
