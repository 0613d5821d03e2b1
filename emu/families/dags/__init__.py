"""DAG jobs on machines with several resources."""
