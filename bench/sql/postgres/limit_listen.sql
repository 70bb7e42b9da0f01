-- Hears that bell.
LISTEN plain
