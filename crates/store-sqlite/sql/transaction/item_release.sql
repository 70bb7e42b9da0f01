-- Keeps the writes for one item.
RELEASE item
