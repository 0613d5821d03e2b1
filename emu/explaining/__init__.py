"""Why jobs took as long as they did: from the events of a run to the causes of each job's completion time."""
