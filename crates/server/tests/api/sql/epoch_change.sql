-- Makes the epochs of the file unknown, as if the file were replaced by one with another history.
UPDATE epoch SET id = id + 2
