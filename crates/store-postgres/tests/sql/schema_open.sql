-- Creates a schema in which every role may create objects.
CREATE SCHEMA leasehold;
GRANT CREATE ON SCHEMA leasehold TO PUBLIC;
