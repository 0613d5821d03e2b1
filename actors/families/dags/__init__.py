"""Worlds of DAG jobs: node managers of machines with several resources, and a resource manager."""
