-- Returns the secret of the installation.
SELECT secret FROM installation WHERE id = 1
