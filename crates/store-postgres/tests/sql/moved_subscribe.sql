-- Subscribes to the publication of another server.
CREATE SUBSCRIPTION moving CONNECTION '{connection}' PUBLICATION everything
