-- Keeps what one operation of a group did.
RELEASE operation
