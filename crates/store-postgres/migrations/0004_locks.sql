-- Named locks, in a table that Java ShedLock can share. Its timestamps have no time zone and are UTC, as ShedLock writes them.
-- compatible_from: 4

CREATE TABLE {schema}.shedlock (
    name varchar(64) NOT NULL,
    lock_until timestamp NOT NULL,
    locked_at timestamp NOT NULL,
    locked_by varchar(255) NOT NULL,
    fencing_token bigint NOT NULL DEFAULT 1,
    CONSTRAINT shedlock_pkey PRIMARY KEY (name)
);

CREATE TRIGGER shedlock_first_token BEFORE INSERT ON {schema}.shedlock
    FOR EACH ROW EXECUTE FUNCTION {schema}.leasehold_shedlock_token();
CREATE TRIGGER shedlock_token BEFORE UPDATE ON {schema}.shedlock
    FOR EACH ROW WHEN (NEW.fencing_token = OLD.fencing_token
        AND (OLD.locked_at IS DISTINCT FROM NEW.locked_at OR OLD.locked_by IS DISTINCT FROM NEW.locked_by))
    EXECUTE FUNCTION {schema}.leasehold_shedlock_token();
CREATE TRIGGER shedlock_token_rises BEFORE UPDATE ON {schema}.shedlock
    FOR EACH ROW WHEN (NEW.fencing_token < OLD.fencing_token)
    EXECUTE FUNCTION {schema}.leasehold_refuse('shedlock_token_rises');
