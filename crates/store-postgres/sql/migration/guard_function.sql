-- Fails if a newer release of the function $1 than $2 is applied; both are filled in as text.
DO $guard$
BEGIN
    IF EXISTS (SELECT FROM {schema}.leasehold_function f WHERE f.name = $1 AND f.release > $2) THEN
        RAISE EXCEPTION 'function % has a newer release than %: a newer program applied it', $1, $2
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
END
$guard$
