-- Returns the secret of the installation.
SELECT secret FROM {schema}.installation WHERE id = 1
