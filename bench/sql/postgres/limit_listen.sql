-- Subscribes to the notifications.
LISTEN plain
