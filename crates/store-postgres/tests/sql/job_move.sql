-- As if the rows came from another cluster.
UPDATE job_limit SET cluster = 0
