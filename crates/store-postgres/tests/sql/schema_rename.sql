-- Gives the schema the default name, so that its description can be compared.
ALTER SCHEMA tenant_2 RENAME TO leasehold
