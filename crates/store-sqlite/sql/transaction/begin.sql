-- Begins a group and takes the write lock at once, so that no operation in the group fails for lack of it.
BEGIN IMMEDIATE
