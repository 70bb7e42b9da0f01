-- Opens a group; the write lock is taken at once, so nothing in the group can fail for want of it.
BEGIN IMMEDIATE
